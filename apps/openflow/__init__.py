"""The only place that names the OpenFlow framework."""
