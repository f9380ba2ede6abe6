"""Invented web sites with tasks on their pages, in Mind2Web's form."""
