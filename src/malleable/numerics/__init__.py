"""Plain numerical tools that know nothing of jobs."""
