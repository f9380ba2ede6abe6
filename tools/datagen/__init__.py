"""Makes the packed samples that ship with worlds, by the generators that users have commands for."""
