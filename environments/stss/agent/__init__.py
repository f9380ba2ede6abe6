"""The evaluated agent as a character."""
