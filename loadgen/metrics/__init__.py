"""What is kept of a run: recorders, snapshots, records, server metrics."""
