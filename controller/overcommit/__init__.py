"""Flow tables smaller than what groups need: who is entitled to entries, and which groups are out at any moment."""
