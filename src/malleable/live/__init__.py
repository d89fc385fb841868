"""Real jobs on real cores: mechanisms that follow a width, and what decides it."""
