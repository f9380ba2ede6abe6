"""Evaluations from Python: `evaluate`, `open_run`, `play`, `assert_scores`, and what they return."""
