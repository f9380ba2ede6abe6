"""Invented catalogues in the form of WebShop's published files."""
