"""The images in dist/, which `make image` made, and one of the Containerfile alone: they run as a
user without privileges, with nothing to write to but /tmp, and measure with the kernel's stamps.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy import image
from deploy.wheels import DIST
from loadgen.version import __version__

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]

MAX_BYTES = 100_000_000  # of the archive without Ray
RUN = [
    "run",
    "--engine",
    "sim",
    "--rate",
    "100",
    "--num-prompts",
    "300",
    "--random-input-len",
    "16",
]


@contextlib.contextmanager
def unpacked(name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The root of an image, and what it says of its process."""
    container = image.run(
        "buildah", "from", "--pull-never" if ":/" not in name else "--quiet", name
    )
    try:
        told = json.loads(image.run("buildah", "inspect", container))
        yield Path(image.run("buildah", "mount", container)), told["OCIv1"]["config"]
    finally:
        image.run("buildah", "rm", container)


def called(name: str, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command of an image in a container of runc.

    The user is 1000 and has no capability, the root cannot be written to, and the network is that
    of this machine.
    """
    with unpacked(name) as (root, config):
        subprocess.run(["runc", "spec", "--bundle", folder], check=True)
        path = folder / "config.json"
        spec = json.loads(path.read_text())
        uid = int(config["User"])
        nothing: dict[str, list[str]] = {kind: [] for kind in spec["process"]["capabilities"]}
        spec["process"] |= {
            "terminal": False,
            "user": {"uid": uid, "gid": uid},
            "args": [*config["Entrypoint"], *arguments],
            "env": config["Env"],
            "cwd": config["WorkingDir"],
            "capabilities": nothing,
            "rlimits": [],
        }
        spec["root"] = {"path": str(root), "readonly": True}
        kinds = [each for each in spec["linux"]["namespaces"] if each["type"] != "network"]
        spec["linux"]["namespaces"] = kinds
        spec["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"})
        path.write_text(json.dumps(spec))
        container = f"loadgen-{os.getpid()}-{time.monotonic_ns()}"
        command = [
            "runc",
            "--root",
            str(folder / "runc"),
            "run",
            "--bundle",
            str(folder),
            container,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def archive(variant: str) -> str:
    """The name of an archive for buildah."""
    return f"oci-archive:{DIST}/loadgen{variant}.oci.tar"


def test_archive_is_small() -> None:
    assert (DIST / "loadgen.oci.tar").stat().st_size <= MAX_BYTES


@pytest.mark.parametrize("variant", image.VARIANTS)
def test_the_kernel_stamps_every_token_in_a_container(variant: str, tmp_path: Path) -> None:
    done = called(archive(variant), tmp_path, *RUN, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["completed"] == 300
    tokens = result["loadgen"]["tokens"]
    assert tokens["token_events"] == result["total_output_tokens"]
    assert tokens["user_stamped_events"] == 0


def test_demo_takes_under_half_a_minute(tmp_path: Path) -> None:
    begin = time.monotonic()
    done = called(archive(""), tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("variant", image.VARIANTS)
def test_image_has_what_its_name_says(variant: str) -> None:
    with unpacked(archive(variant)) as (root, config):
        assert config["User"] == "1000"
        (site,) = root.glob("opt/loadgen/lib/python3.*/site-packages")
        assert (site / f"loadgen-{__version__}.dist-info").is_dir()
        assert bool(list(site.glob("ray-*.dist-info"))) == (variant == "-ray")
        assert list(site.glob("loadgen/core/sender.cpython-*.so"))


def test_containerfile_builds_the_source_where_it_has_no_wheel(tmp_path: Path) -> None:
    """On a base that has what the official image has, and other packages need: Python's headers."""
    base, name = "localhost/loadgen-stand-in", "localhost/loadgen-from-source"
    image.BUILD.mkdir(parents=True, exist_ok=True)
    image.make_base(base, "apt", "libpython3-dev")
    image.build(name, base)
    done = called(name, tmp_path, *RUN)
    assert done.returncode == 0, done.stderr
    assert "Successful requests:                     300" in done.stdout
