"""The background characters: what they do of their own accord, and what they answer."""
