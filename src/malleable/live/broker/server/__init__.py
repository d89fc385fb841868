"""The broker of a machine behind a socket: sessions of jobs, an HTTP interface, and the page."""
