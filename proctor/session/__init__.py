"""Plays one session: the agent's transcript, `<think>` blocks, and how failures are classified."""
