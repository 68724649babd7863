"""Codecs for the frames that the controller reads and writes."""
