"""The server's own metrics: names, parser, time series."""
