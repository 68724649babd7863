"""Desired settings of switches, columns of Open vSwitch's database, and what has to be changed for them."""
