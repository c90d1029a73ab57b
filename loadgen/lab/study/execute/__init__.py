"""Running a study: trials, decisions, and the store."""
