"""Live: real jobs on real cores, divided by the very policies that the simulator runs."""
