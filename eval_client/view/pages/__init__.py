"""The pages, a module each: from a request to the values that a template shows."""
