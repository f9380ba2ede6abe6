"""Controller and workers: hold the sessions of environments, over HTTP."""
