"""Study files and what they say."""
