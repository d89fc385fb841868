"""Pages about what was found: self-contained, for a browser, a phone or paper."""
