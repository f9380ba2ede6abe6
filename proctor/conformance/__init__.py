"""The contract that every environment must meet, and the check of it."""
