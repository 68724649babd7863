"""What several controllers of one fabric need to agree on: the store they share, who leads, and what counts."""
