"""`proctor play`: a person plays an environment at a terminal, or a script by standard input."""
