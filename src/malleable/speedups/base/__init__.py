"""What a speedup family may be built on."""
