"""What is done to a whole run from outside: stopping, copying and removing it."""
