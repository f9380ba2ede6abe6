"""Judges and users: models or rules."""
