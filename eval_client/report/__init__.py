"""Previews of plans, reports of runs, and exports."""
