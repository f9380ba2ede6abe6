"""Sandboxes from Linux namespaces. What is not in `engine` runs inside them, with the standard library alone."""
