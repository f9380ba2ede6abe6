"""Runs as Harbor reads them, as rows to train on, and as records of Every Eval Ever."""
