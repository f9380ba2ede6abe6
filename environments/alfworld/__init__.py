"""Household tasks in text: an engine for ALFWorld's games, and games of our own."""
