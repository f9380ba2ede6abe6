"""Places the servers of a run, and further clients, on the nodes of a Ray cluster; needs the extra `ray`."""
