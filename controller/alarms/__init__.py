"""Alarms: what is wrong with the fabric and the controller now, each cause once with what follows from it beneath."""
