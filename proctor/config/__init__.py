"""Reads what users write: YAML files, task definitions, settings and secrets."""
