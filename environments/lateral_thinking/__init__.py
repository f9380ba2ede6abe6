"""Lateral thinking puzzles: yes/no questions about a strange story until its hidden truth is found."""
