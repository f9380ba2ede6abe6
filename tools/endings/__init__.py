"""Learns the weights with which the slot judge of STSS tells whether a talk ends in an agreement."""
