"""The compiled hot path, and the Python definitions that it is held to."""
