"""The endpoints of agents, and the gates at which requests wait for rate limits."""
