"""Service classes: trees that move between groups by measured queueing, and queue rates that follow goals."""
