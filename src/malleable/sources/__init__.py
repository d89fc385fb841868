"""Where jobs come from: drawn from the laws of a workload, given as arrays, or read from a trace."""
