"""What distributions share."""
