"""Commands that manage runs: ls, stop, rm, copy, rescore; and shell completion."""
