"""The language level: single conversations, judged by conditions."""
