"""Numbers by house rules, in plain Python."""
