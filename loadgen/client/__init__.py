"""One event loop on the clock: connections, pacing, sending."""
