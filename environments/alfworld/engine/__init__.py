"""Plays a game of ALFWorld: PDDL facts, actions and a grammar of texts."""
