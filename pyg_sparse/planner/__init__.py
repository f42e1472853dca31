"""Chooses formats and orders, and remembers the choice."""
