"""The error of a game file."""


class GameError(ValueError):
    """A game can't be read or played; the message names the part and what is wrong with it."""
