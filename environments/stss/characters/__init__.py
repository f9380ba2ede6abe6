"""The background characters: their routines and their talks."""
