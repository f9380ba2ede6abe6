"""A run: which trials start when, on this client and beside others."""
