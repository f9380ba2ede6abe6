"""A worker: holds tasks and their sessions."""
