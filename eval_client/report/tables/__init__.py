"""Pure: the tables of a report, and those of papers."""
