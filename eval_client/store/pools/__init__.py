"""Where clients keep what they share of an endpoint."""
