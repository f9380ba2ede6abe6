"""Foreign wires: clients of other programs play our tasks. `gateway.py` says how to add a wire."""
