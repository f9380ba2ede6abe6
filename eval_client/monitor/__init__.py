"""Views of a run in progress: screen, metrics, and the reasons for a stall."""
