"""The theory as callable code: bounds, fixed points, exact queues. Everything here is deterministic."""
