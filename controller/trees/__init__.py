"""Multicast trees over a fabric graph, behind one interface."""
