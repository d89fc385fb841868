"""One step of policy improvement: fit a value function to a policy, let GREEDY run on it, and try it.

`count_value*` are functions of class counts, fitted to size-blind WHAM (`wham-improved`); `size_value*` are
functions of remaining sizes, fitted to `wham-discounted` (`wham-fitted`).
"""
