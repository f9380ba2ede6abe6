"""The hosts of a game: one that compares words, one that asks a model."""
