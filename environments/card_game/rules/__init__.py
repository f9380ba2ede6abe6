"""The rules of the game between two players."""
