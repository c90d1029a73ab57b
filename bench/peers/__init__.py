"""Other load generators beside loadgen."""
