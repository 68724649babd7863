"""A fabric of OpenFlow switches in one process, for a real controller to drive over loopback."""
