"""What a controller tells of tenants of its policy: their hosts, who sends and receives, and what nobody uses."""
