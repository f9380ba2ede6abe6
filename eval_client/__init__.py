"""Plan, assign, play, journal, report."""
