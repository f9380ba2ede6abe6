"""The language level: single conversations, judged by a list of conditions."""
