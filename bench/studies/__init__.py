"""Studies of real engines."""
