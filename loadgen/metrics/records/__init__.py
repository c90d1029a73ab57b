"""The records file: one line per request, between a header and a trailer."""
