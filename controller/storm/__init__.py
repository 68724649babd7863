"""Storms of joins against a controller: who joins when, what becomes of it, and how large one may be."""
