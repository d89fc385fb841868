"""How many of a machine's cores there are, over time."""
