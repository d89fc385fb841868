"""What several experiments share: verdicts from numbers, curves, settings and cells."""
