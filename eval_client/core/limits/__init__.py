"""Pure: the limits of endpoints, their rates, and how clients share them."""
