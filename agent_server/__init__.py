"""Serves agents as OpenAI-compatible endpoints."""
