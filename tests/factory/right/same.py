"""Changes nothing."""
