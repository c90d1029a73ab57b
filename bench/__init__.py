"""Where loadgen measures itself."""
