"""Generates tasks on invented sites."""
