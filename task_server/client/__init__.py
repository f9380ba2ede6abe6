"""The client of a task server."""
