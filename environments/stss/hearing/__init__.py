"""How a character understands what is said to it, without a model; and how well, measured."""
