"""Controllers and workers: they run environment sessions and serve them over HTTP."""
