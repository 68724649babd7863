"""Queues of service classes at the ports of switches: set up over OVSDB, with rates that may follow goals."""
