"""Who judges and who plays the user: models, or rules."""
