"""The published tasks: imported, repaired, and made from templates."""
