"""`proctor doctor`: checks a machine or a plan before a run."""
