"""The multicast core: from reports to flow entries."""
