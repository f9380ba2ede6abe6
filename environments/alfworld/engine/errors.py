"""What is wrong with a game file."""


class GameError(ValueError):
    """A game can't be read or played; the message says what is wrong, and where."""
