"""One trial: its attempts, turn by turn."""
