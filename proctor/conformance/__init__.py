"""What every environment promises, and the check that holds it to that."""
