"""The loops over events: one for policies that look at class counts, one for those that look at jobs."""
