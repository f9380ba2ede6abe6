"""Comparisons of two agents, of one run or of two."""
