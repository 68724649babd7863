"""The change feed of a running controller as a file system: `vsrt mount`."""
