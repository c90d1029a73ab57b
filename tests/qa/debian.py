"""Programs of Debian's packages, unpacked once into the user's cache folder without root;
nothing is installed.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.engines.environments import MADE, CannotBeMade, alone

Run = Callable[[Sequence[str]], None]


def unpacked(
    folder: Path, packages: Sequence[str], find: Callable[[Path], Path], remedy: str, run: Run
) -> tuple[Path, Path]:
    """Fetch packages, with what they depend on, into `folder` on first use.

    Args:
        folder: Where they stay.
        packages: Their names.
        find: Finds the program below the root of the unpacked files; raises CannotBeMade where
            there is none.
        remedy: What to do where they cannot be fetched.
        run: Runs a command.

    Returns:
        The root of the unpacked files, and the program.

    Raises:
        CannotBeMade: They cannot be fetched; the text says what to do.
    """
    root = folder / "root"
    with alone(folder.with_suffix(".lock")):
        if not (folder / MADE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            root.mkdir(parents=True)
            try:
                _unpack(folder, root, packages, run)
                find(root)
            except (OSError, CannotBeMade) as error:
                raise CannotBeMade(f"{remedy}: {error}") from error
            (folder / MADE).touch()
    return root, find(root)


def _unpack(folder: Path, root: Path, packages: Sequence[str], run: Run) -> None:
    """Download packages with apt into `folder` and unpack them into `root`."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    own = [
        f"Dir::State={folder}/state",
        f"Dir::Cache={folder}/cache",
        "Dir::State::status=/var/lib/dpkg/status",
    ]
    own += ["Debug::NoLocking=true", "APT::Sandbox::User=root"]
    options = [word for option in own for word in ("-o", option)]
    run(["apt-get", *options, "update"])
    run(
        [
            "apt-get",
            *options,
            "install",
            "--download-only",
            "--no-install-recommends",
            "--yes",
            *packages,
        ]
    )
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(root)])
    shutil.rmtree(folder / "cache")
    shutil.rmtree(folder / "state")
