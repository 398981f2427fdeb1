"""Leaves the functions wrong."""
