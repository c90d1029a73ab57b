"""`python -m loadgen`, the same as the command `loadgen`."""

from loadgen.cli.main import command

command()
