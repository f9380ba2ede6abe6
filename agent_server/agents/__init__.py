"""The agents that an agent server offers."""
