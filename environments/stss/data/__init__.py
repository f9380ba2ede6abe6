"""The published tasks: imports and repairs them, and makes tasks from templates."""
