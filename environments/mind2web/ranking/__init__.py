"""Which candidates of a page are asked about first, and how one of them wins."""
