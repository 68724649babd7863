"""Where the time of a controller's operations goes: spans of them as they happen, and what many of them show."""
