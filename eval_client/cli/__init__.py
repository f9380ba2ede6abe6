"""The command `proctor`."""
