"""The processes that a run starts: task servers, agent servers, further clients."""
