"""How a model endpoint is reached: its fields, its keys, and what it streams."""
