"""The card game environment of AgentBench: two teams of four fish, hidden from each other, fight."""
