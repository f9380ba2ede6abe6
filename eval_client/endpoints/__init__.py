"""The endpoints of agents, and where requests wait for their limits."""
