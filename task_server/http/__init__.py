"""The HTTP side of workers and controllers: routes, access, calls."""
