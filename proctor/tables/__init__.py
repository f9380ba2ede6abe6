"""Tables of results as values, and their five formats: text, Markdown, LaTeX, CSV and JSON."""
