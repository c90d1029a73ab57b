"""`loadgen dataset --from-log`: write the requests in the log of a gateway as rows of a trace."""

import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from loadgen.cli import exit_codes
from loadgen.config.data import NO_TOKENIZER
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.files.mapped_file import checked_path

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings

STDOUT = "-"
SECRET_BYTES = 32


def convert(
    settings: "RunSettings", path: str | None, file: BinaryIO | None, *, private: bool
) -> int:
    """Write the rows, and print what was left out; returns the exit code.

    Args:
        settings: The checked settings; their data set is the log.
        path: The path of the file to write, "-" for stdout; None: none is named.
        file: That file.
        private: Whether texts are replaced by stand-ins.

    Raises:
        BadInput: No file is named, the log has no request, or there is no tokenizer for stand-ins.
    """
    from loadgen.workload.datasets.gateway_log import LOG, GatewayLog, unchanged
    from loadgen.workload.datasets.stand_ins import PRIVATE, StandIns
    from loadgen.workload.tokenizer.tokenizer import tokenizer_name, tokenizer_of

    if path is None or file is None:
        raise BadInput(LOG, "writes a file, and none is named", "give --export FILE.jsonl")
    stand_ins = None
    if private:
        if tokenizer_name(settings) in (None, NO_TOKENIZER):
            problem = "needs the tokenizer of the model, to keep the lengths of texts"
            raise BadInput(PRIVATE, problem, "give --tokenizer FOLDER or --model NAME")
        stand_ins = StandIns(tokenizer_of(settings), secrets.token_bytes(SECRET_BYTES))
    log_path: Path = checked_path(LOG, settings.dataset_path or "")
    if path != STDOUT and Path(path).expanduser().resolve() == log_path.resolve():
        raise BadInput("--export", f"{path} is the log that is to be read", "name another file")
    log = GatewayLog(log_path, settings, unchanged if stand_ins is None else stand_ins.body)
    file.writelines(log.rows())
    human = sys.stderr if path == STDOUT else sys.stdout
    print(f"{log.count:,} requests of {log.lines:,} lines{_counts(log.left_out)}", file=human)
    if stand_ins is not None:
        print(f"All texts are stand-ins{_counts(stand_ins.dropped)}", file=human)
    if path != STDOUT:
        flags = (
            f"--backend {endpoints.name_of(settings)} --dataset-name trace --dataset-path {path}"
        )
        print(f"Saved: {path}; to send it: {flags}", file=human)
    return exit_codes.DONE


def _counts(counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{reason} ({count:,})" for reason, count in counts.items())
    return f"; left out: {listed}" if listed else ""
