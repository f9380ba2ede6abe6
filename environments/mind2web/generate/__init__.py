"""Makes tasks on invented sites."""
