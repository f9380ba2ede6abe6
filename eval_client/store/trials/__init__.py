"""The trials of a run that a filter selects: the query, their rows, and the search in their texts."""
