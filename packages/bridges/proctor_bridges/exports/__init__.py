"""Runs as Harbor reads them, and as rows to train on."""
