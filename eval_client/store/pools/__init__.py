"""Storage of endpoint pools: the state of an endpoint that several clients share."""
