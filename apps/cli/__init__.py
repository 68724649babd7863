"""The vsrt command."""
