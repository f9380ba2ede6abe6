"""The worlds, and the vocabulary that all parts share."""
