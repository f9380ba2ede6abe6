"""Pure statistics over scores."""
