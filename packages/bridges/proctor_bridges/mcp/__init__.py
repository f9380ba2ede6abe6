"""Episodes as MCP servers, for coding agents that own their loop and can play only through tools."""
