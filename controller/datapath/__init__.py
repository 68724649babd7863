"""Getting flow entries onto switches: how many edits at once, whose first, batch by batch.

In the end this package owns everything about getting entries onto switches: lanes, windows and batches now, and with
time what `controller.rules` has of it (desired against installed, plans, readings, the check).
"""
