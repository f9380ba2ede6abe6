"""Places the servers of a run on the machines of a Ray cluster; needs the extra `ray`."""
