"""What the broker decides: from events to actions. No clock, no threads, no files and no sockets."""
