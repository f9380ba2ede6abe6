"""The official files of Mind2Web."""
