"""Proctor with other programs: their clients, their servers, coding agents, and what they read of a run."""
