"""The processes that make namespace sandboxes and run inside them; they import the standard library alone."""
