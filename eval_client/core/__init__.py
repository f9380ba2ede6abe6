"""Pure: what a run decides by. No clock, no file, no network."""
