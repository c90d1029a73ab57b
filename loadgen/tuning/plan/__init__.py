"""What a study would start, in which order."""
