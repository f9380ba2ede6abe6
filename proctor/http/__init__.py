"""The HTTP client, and what all our HTTP servers share."""
