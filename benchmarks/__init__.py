"""Timings of the hot paths, taken in one run on one machine: `make bench`."""
