"""A run, from its servers' start to its final state: what plays its trials, watches them and shows them."""
