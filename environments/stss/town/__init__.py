"""The town: its map, places, clock and schedules."""
