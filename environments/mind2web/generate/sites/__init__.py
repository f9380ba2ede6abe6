"""Invented web sites: pages of our own with tasks on them, in the form of Mind2Web's."""
