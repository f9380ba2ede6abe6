"""Pure: statistics of scores."""
