"""Laws of job sizes and inter-arrival times, one a module; `malleable.catalog` finds them by listing this folder."""
