"""Worlds and agents in files of the user's own: loaded by path or module, and identified by what they are made of."""
