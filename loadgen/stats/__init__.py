"""Statistics: intervals, tests and resampling. Values in, values out."""
