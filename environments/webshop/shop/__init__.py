"""The shop: its pages, and a visit to it."""
