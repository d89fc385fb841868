"""Arrival processes, one a module; `malleable.catalog` finds them by listing this folder."""
