"""Ranks the candidates of a page, and runs the tournament that chooses one."""
