"""Laws of job sizes and inter-arrival times, one a module; `malleable.catalog` lists this folder."""
