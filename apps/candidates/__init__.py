"""Policies that a running controller's settings seem to follow: a process that looks for them, and its parent."""
