"""Random walks on a ring."""
