"""What SGLang's `bench_serving` sends; `python -m bench.peers.sglang_bodies` records it."""

import asyncio
import json
import tempfile
from pathlib import Path

from bench.engines.environments import made
from bench.peers import recipes
from bench.peers.compare_vllm import offline
from tests.helpers.sent_bodies import Body, bodies
from tests.helpers.sglang_cases import CASES, RECORDED, flags, measured, write_files


def command(programs: Path) -> list[str]:
    """The tool, without its flags."""
    return [str(programs / "python"), "-m", "sglang.bench_serving"]


async def sent(case: str, folder: Path) -> list[Body]:
    """The bodies of the measured requests of a case.

    Raises:
        CannotBeMade: The tool cannot be installed.
    """
    write_files(folder)
    line = [*command(made(recipes.sglang, recipes.FOLDER)), *flags(case, folder)]
    (theirs,) = await bodies(line, env=offline(), folder=folder)
    return measured(case, theirs)


async def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as name:
        found = {case: await sent(case, Path(name)) for case in CASES}
    about = (
        f"sglang {recipes.version(recipes.sglang)}: the bodies of the measured requests of "
        "sglang.bench_serving"
    )
    RECORDED.write_text(json.dumps({"made_by": about, "bodies": found}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
