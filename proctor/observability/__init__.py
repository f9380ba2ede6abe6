"""What a process says of itself to whoever runs it: metrics, traces, logs."""
