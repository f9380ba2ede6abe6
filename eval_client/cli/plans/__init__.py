"""Makes plans: from the options of `proctor run`, and by `proctor init`."""
