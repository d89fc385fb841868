"""The experiments, one a file; the number in a name is its place on the page."""
