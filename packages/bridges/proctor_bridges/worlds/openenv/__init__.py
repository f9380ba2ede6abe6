"""Environments of OpenEnv servers: one session per WebSocket."""
