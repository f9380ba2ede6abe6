"""Environments that other people's servers play: each speaks the protocol of its server."""
