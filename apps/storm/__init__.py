"""Storms of joins and leaves, played by simulated switches against a controller."""
