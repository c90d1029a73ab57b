"""Studies: files that ask which way of serving is best, and what would be started to find out."""
