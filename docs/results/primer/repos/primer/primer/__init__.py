"""Numbers that describe a sample, in plain Python."""
