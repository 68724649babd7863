"""OpenFlow switches that are simulated, each with a connection of its own to a controller, their cables and hosts."""
