"""What files that are published have beside the report, and what they must not have."""
