"""SimulBench: a model simulates a terminal, a game, a generator; a judge rates its next reply from 1 to 10."""
