"""What is done to a whole run from outside: checking, stopping, copying and removing it."""
