"""What would go wrong in a run, found before it: facts are gathered, findings follow from them."""
