"""Workflows against a running controller: what each step would be done for, and doing it, item by item."""
