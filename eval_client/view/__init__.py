"""The web page on runs: routes, access, pages and templates."""
