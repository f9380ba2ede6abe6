"""Plays tasks in the format of Harbor: folders with task.toml, instruction.md, environment, tests and solution."""
