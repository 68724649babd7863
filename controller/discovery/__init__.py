"""Switches, links and hosts as the fabric itself shows them: LLDP, port status and the packets of hosts."""
