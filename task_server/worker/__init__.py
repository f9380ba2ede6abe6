"""The worker: holds tasks and runs their sessions."""
