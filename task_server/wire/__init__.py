"""What travels between clients, controllers and workers."""
