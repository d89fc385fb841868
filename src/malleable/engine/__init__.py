"""The simulator. Exact, event by event; the only importer of numba."""
