"""Port metrics and allocation: which port next, and why."""
