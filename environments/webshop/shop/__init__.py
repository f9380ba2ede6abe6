"""The shop: its pages, and visits to it."""
