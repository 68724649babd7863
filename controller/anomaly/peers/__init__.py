"""Peer comparison: which of many equal members behaves unlike the rest, and for how long."""
