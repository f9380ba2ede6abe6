"""A run: starts its trials, on this client and together with others."""
