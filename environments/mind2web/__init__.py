"""Mind2Web: which element of a recorded web page is acted on next, and how."""
