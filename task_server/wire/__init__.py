"""The messages and errors between clients, controllers and workers."""
