"""Makes games of our own."""
