"""The broker, in a script or behind a socket: what it keeps, what it shows, and how it is asked."""
