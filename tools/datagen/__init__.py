"""The tools that make the samples that ship with Proctor."""
