"""Pure: plots of results, from a value to SVG text and a table of the same figures."""
