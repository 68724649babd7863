"""Who wants which group from which source: IGMP and MLD router state."""
