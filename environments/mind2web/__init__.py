"""Mind2Web: choose the element of a recorded web page for the next action, and the action."""
