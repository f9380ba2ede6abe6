"""Two simulated days: played, recorded and drawn."""
