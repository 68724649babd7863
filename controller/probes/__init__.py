"""Questions to a controller or a recording, in a small language that can look and count, and nothing else."""
