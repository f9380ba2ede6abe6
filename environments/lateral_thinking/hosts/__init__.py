"""The two kinds of hosts: one compares words, one asks a model."""
