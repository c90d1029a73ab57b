"""`loadgen completion`: print the shell code that completes commands, flags and their values."""

import argparse
import sys

from loadgen.cli import exit_codes
from loadgen.cli.output import say
from loadgen.util.argument_parser import OneLineParser

START_FILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc, after compinit", "fish": "~/.config/fish/config.fish"}
LINES = {
    "bash": 'eval "$(loadgen completion bash)"',
    "zsh": 'eval "$(loadgen completion zsh)"',
    "fish": "loadgen completion fish | source",
}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    rows = [f"  {LINES[shell]:<35} {file}" for shell, file in START_FILES.items()]
    parser = OneLineParser(
        "loadgen completion",
        description="Print the code with which a shell completes commands, flags and their values.",
        epilog="\n".join(["To use it, add a line to the file that the shell reads when it starts:", *rows]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=list(LINES), help="the shell")
    shell = parser.parse_args(argv).shell
    from argcomplete.shell_integration import shellcode

    print(shellcode(["loadgen"], True, shell))
    if sys.stdout.isatty():
        say(f"to use it, add this line to {START_FILES[shell]}: {LINES[shell]}")
    return exit_codes.DONE
