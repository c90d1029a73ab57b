"""What some runs do besides: each feature with its part of the sending, the data and the report."""
