"""What a run shows of itself while it is played: screen, metrics, and why it stands still."""
