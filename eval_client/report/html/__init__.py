"""The static report of a run: one HTML file without script, network or secrets."""
