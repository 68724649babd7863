"""Captured packets: files of them are read frame by frame, and what their groups send and who joins is told."""
