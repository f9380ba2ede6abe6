"""The stages of the benchmark, one file each."""
