"""The shell around the cores: OpenFlow applications, command line and emulation."""
