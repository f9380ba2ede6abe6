"""Runs in the formats of other people's programs: Inspect's logs, ATIF trajectories, rows to train on."""
