"""Where the scheduler's actions are carried out."""
