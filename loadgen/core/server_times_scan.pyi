"""The compiled reader of server times; `loadgen.core.server_times` says what is true."""

PLACES: tuple[str, ...]
