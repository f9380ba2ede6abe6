"""Serves agents as an OpenAI-compatible endpoint."""
