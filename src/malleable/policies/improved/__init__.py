"""One step of policy improvement from size-blind WHAM: paths, the fit of its value function, and a check."""
