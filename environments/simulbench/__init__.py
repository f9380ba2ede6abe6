"""SimulBench: a model acts as a terminal, a game, a generator; the next reply is judged from 1 to 10."""
