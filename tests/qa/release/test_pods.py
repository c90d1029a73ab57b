"""The script of an Indexed Job in three network namespaces, which stand for pods: one result of
three machines, INVALID with the name of a machine that is lost.

A pod has an address, processes, /tmp and /dev/shm of its own. Needs root, and Ray.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import environment, served
from tests.helpers.source import ROOT

pytestmark = [pytest.mark.release, pytest.mark.timeout(600)]

SCRIPT = ROOT / "deploy/kubernetes/indexed/pod.sh"
BRIDGE, NETWORK = "loadgen-pods", "10.78.0"
SERVER, ADDRESSES = f"{NETWORK}.254", [f"{NETWORK}.{index + 1}" for index in range(3)]
OWN_MEMORY = "mkdir -p /tmp/ray; for dir in /tmp/ray /dev/shm; do mount -t tmpfs tmpfs $dir; done"


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


@pytest.fixture
def network() -> Iterator[None]:
    """A bridge with the server's address, and a namespace on it for each pod."""
    assert os.geteuid() == 0, "network namespaces need root"
    assert importlib.util.find_spec("ray"), "pip install ray"
    with contextlib.ExitStack() as stack:
        ip(f"link add {BRIDGE} type bridge")
        stack.callback(ip, f"link delete {BRIDGE}")
        ip(f"address add {SERVER}/24 dev {BRIDGE}")
        ip(f"link set {BRIDGE} up")
        for index, address in enumerate(ADDRESSES):
            pod = f"loadgen-pod-{index}"
            ip(f"netns add {pod}")
            stack.callback(ip, f"netns delete {pod}")
            ip(f"link add pod{index} type veth peer name eth0 netns {pod}")
            ip(f"link set pod{index} master {BRIDGE} up")
            ip(f"-n {pod} address add {address}/24 dev eth0")
            for device in ("lo", "eth0"):
                ip(f"-n {pod} link set {device} up")
        yield


def pod(index: int, log: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a pod; all of its processes end with the one that is returned."""
    isolated = ["ip", "netns", "exec", f"loadgen-pod-{index}", "unshare", "--mount", "--pid"]
    command = [*isolated, "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    command += [f'{OWN_MEMORY}; exec sh "$@"', "sh", str(SCRIPT), "run", *arguments]
    variables = {
        "JOB_COMPLETION_INDEX": str(index),
        "POD_IP": ADDRESSES[index],
        "HEAD": ADDRESSES[0],
        "PODS": str(len(ADDRESSES)),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with log.open("w") as output:
        return subprocess.Popen(
            command, env=environment() | variables, stdout=output, stderr=output, text=True
        )


@contextlib.contextmanager
def job(folder: Path, *arguments: str) -> Iterator[list["subprocess.Popen[str]"]]:
    """The pods of a Job that measures the simulator."""
    with contextlib.ExitStack() as stack:
        url, _ = stack.enter_context(served("--host", SERVER))
        flags = ["--base-url", url, "--workers", "1", "--save-result", "--result-dir", str(folder)]
        flags += ["--result-filename", "one.json", *arguments]
        pods = []
        for index in range(len(ADDRESSES)):
            process = pod(index, folder / f"{index}.log", *flags)
            stack.callback(process.wait)
            stack.callback(process.kill)
            pods.append(process)
        yield pods


def result(folder: Path) -> dict[str, Any]:
    """The one result that was saved."""
    made: dict[str, Any] = json.loads((folder / "one.json").read_text())
    return made


def log(folder: Path) -> str:
    """What the head said."""
    return (folder / "0.log").read_text()


@pytest.mark.usefixtures("network")
def test_pods_give_one_result(tmp_path: Path) -> None:
    with job(tmp_path, "--rate", "30", "--num-prompts", "300") as pods:
        codes = [process.wait(400) for process in pods]
    assert codes == [0, 0, 0], log(tmp_path)
    made = result(tmp_path)
    assert made["completed"] == 300
    hosts = [worker["host"] for worker in made["loadgen"]["workers"]]
    assert sorted(hosts) == ADDRESSES


@pytest.mark.usefixtures("network")
def test_a_pod_that_is_killed_makes_the_result_invalid_and_is_named(tmp_path: Path) -> None:
    with job(tmp_path, "--rate", "30", "--num-prompts", "1200") as pods:
        while "answered" not in log(tmp_path):
            assert pods[0].poll() is None, log(tmp_path)
            time.sleep(0.5)
        os.kill(pods[2].pid, signal.SIGKILL)
        assert pods[0].wait(400) != 0
        assert pods[1].wait(60) == 0
    assert result(tmp_path)["loadgen"]["verdict"] == "INVALID"
    assert f"lost with node {ADDRESSES[2]}" in log(tmp_path)
