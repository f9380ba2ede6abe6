"""Files that people write: YAML, task definitions, and settings by name."""
