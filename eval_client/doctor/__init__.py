"""Checks a machine or a plan before a run: I/O gathers facts, and findings are computed from the facts."""
