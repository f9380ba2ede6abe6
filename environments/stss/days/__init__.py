"""The two simulated days: plays, records and draws them."""
