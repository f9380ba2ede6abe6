"""Commands that manage runs: stop, rm, prune, copy; and shell completion."""
