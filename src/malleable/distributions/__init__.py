"""Laws of job sizes and inter-arrival times, one per module; `malleable.catalog` lists this folder."""
