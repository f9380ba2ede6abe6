"""Days, times, places and people that a text names."""
