"""What a plan would run, and what a run found out."""
