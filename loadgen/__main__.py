"""`python -m loadgen`, the same as the command `loadgen`."""

from loadgen.cli import command

command()
