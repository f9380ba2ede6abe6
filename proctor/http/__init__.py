"""HTTP for all parts: one client, and what our servers have in common."""
