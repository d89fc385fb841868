"""Allocation policies, one per module; `malleable.catalog` finds them by listing this folder."""
