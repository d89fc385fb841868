"""One step of policy improvement from `wham-discounted`: moments, the fit of its value function, a trial."""
