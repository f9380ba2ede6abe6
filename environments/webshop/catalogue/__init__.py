"""Catalogues: made, stored and indexed."""
