"""What a policy is built on, and what a policy file imports."""
