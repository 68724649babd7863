"""Pure cores: no clock, socket or framework."""
