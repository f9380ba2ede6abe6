"""Makes, stores and indexes catalogues."""
