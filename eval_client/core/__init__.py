"""Pure: the decisions of a run. No clock, no files, no network."""
