"""Worlds that other programs' servers play: our side is a client of their protocol."""
