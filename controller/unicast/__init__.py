"""Shortest paths for unicast, spread over equal ones."""
