"""Mininet networks and measured runs."""
