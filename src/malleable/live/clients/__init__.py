"""Clients of a broker: each is a way for a user's work to follow the cores that it is granted."""
