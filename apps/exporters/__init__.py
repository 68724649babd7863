"""Where the performance manager's samples, rates and events go: files, Prometheus, syslog, a log of events."""
