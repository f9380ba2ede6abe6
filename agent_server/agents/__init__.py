"""The agents that the agent server has built in."""
