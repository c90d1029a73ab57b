"""Live output while a command works: a redrawn screen on a terminal, lines in a log."""
