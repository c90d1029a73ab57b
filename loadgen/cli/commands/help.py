"""`loadgen help`: show the commands, the flags of one by topic, or the exit codes; and `loadgen
version`.
"""

from typing import TYPE_CHECKING

from loadgen.cli import command_list, exit_codes
from loadgen.errors import BadInput
from loadgen.version import __version__

if TYPE_CHECKING:
    from loadgen.cli.topic_parser import TopicParser

EXIT_CODES = "exit-codes"
USAGE = """\
usage: loadgen help                 show the commands
       loadgen help COMMAND         show the flags of a command, or their topics
       loadgen help COMMAND TOPIC   show a topic of `run`, `search` or `dataset`
       loadgen help COMMAND FLAG    show a flag of one of these
       loadgen help exit-codes      show the exit codes"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    name, words = (argv[0], argv[1:]) if argv else ("", [])
    if name in ("-h", "--help"):
        print(USAGE)
    elif not name:
        print(command_list.overview())
    elif name == EXIT_CODES:
        print(f"Exit codes:\n{exit_codes.EXPLAINED}")
    elif parser := with_topics(argv):
        print("\n".join(map(parser.topic, words)) if words else parser.topics(), end="")
    elif command := command_list.find(name):
        return command([*words, "--help"])
    else:
        raise BadInput(name, "unknown command", command_list.remedy(name))
    return exit_codes.DONE


def version(argv: list[str]) -> int:
    """Print the version of loadgen; returns the exit code."""
    # Not before: `loadgen --help` parses no flags.
    from loadgen.util.argument_parser import OneLineParser

    OneLineParser("loadgen version", description="Print the version of loadgen.").parse_args(argv)
    print(f"loadgen {__version__}")
    return exit_codes.DONE


def with_topics(command: list[str]) -> "TopicParser | None":
    """Return the parser of a command if its flags have topics, else None."""
    from loadgen.cli import flags
    from loadgen.cli.commands import dataset, search

    if command[0] == "dataset" and command[1:2] in (["fetch"], ["cache"]):
        return None
    parsers = {"run": flags.run_parser, "search": search.parser, "dataset": dataset.parser}
    return parsers[command[0]]() if command[0] in parsers else None
