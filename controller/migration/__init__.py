"""Configurations of other programs made into a policy, with a report of what became of each of their lines."""
