"""Names on a hub: files are listed by it, downloaded when they are read, and found in its cache."""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from urllib.parse import unquote, urlsplit

import pytest

from tests.helpers.command_line import LOADGEN
from tests.workload.test_random_words import SIMULATOR

COMMIT = "a" * 40
ROWS = [
    {"question_id": number, "turns": [f"Tell me about {number} boats.", "More."]}
    for number in range(5)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


class Hub(http.server.ThreadingHTTPServer):
    """A hub with data sets.

    Attributes:
        files: The content of each file, by data set, revision and path.
        downloaded: The paths of the files that were sent.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.downloaded = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            self._list("/".join(parts[2:4]), parts[4:])
        else:
            self._send("/".join(parts[1:3]), "/".join(parts[4:]))

    def _list(self, name, rest):
        revision = "/".join(rest[1:]) if rest else "main"
        files = self.server.files.get((name, revision))
        if files is None:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        entries = [
            {"type": "file", "path": path, "size": len(files[path]), "oid": COMMIT}
            for path in files
        ]
        about = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": path} for path in files]}
        self._answer(200, json.dumps(entries if rest[:1] == ["tree"] else about).encode())

    def _send(self, name, where):
        for (owner, revision), files in self.server.files.items():
            path = where.removeprefix(f"{revision}/")
            if owner == name and path != where and path in files:
                if self.command == "GET":
                    self.server.downloaded.append(path)
                self._answer(200, files[path], {"ETag": f'"{path}"', "X-Repo-Commit": COMMIT})
                return
        self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _answer(self, status, content, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def hub():
    with Hub() as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def prompts(hub, tmp_path):
    """Returns the prompts that `loadgen dataset` shows of a name on the hub, or what it says of
    it.
    """

    def run(path, *flags, name="hf", **environment):
        command = [sys.executable, "-m", "loadgen", "dataset", "--dataset-name", name]
        command += [] if path is None else ["--dataset-path", path]
        command += ["--tokenizer", str(SIMULATOR), "--export", "-", "--quiet", *flags]
        own = {
            "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
            "HF_HOME": str(tmp_path / "hub"),
            **environment,
        }
        own |= {
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "no_proxy": "127.0.0.1",
            "HF_HUB_DISABLE_XET": "1",
        }
        done = subprocess.run(
            command, env=os.environ | own, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            return done.stderr.strip()
        return [json.loads(line)["prompt"] for line in done.stdout.splitlines()]

    return run


def test_data_set_by_name_is_downloaded_and_then_found_in_the_cache(hub, prompts):
    hub.files["philschmid/mt-bench", "main"] = {
        "README.md": b"# A data set",
        "question.jsonl": LINES,
    }
    asked = prompts("philschmid/mt-bench", "--num-prompts", "5")
    assert sorted(asked) == [row["turns"][0] for row in ROWS]
    assert hub.downloaded.count("question.jsonl") == 1
    assert prompts("philschmid/mt-bench", "--num-prompts", "5", HF_HUB_OFFLINE="1") == asked
    assert hub.downloaded.count("question.jsonl") == 1


def test_only_the_files_whose_rows_are_needed_are_downloaded(hub, prompts):
    parts = {f"data/train-{part}.jsonl": LINES for part in range(3)} | {"data/test-0.jsonl": LINES}
    hub.files["own/rows", "main"] = parts
    prompts("own/rows", "--num-prompts", "4", "--disable-shuffle")
    assert set(hub.downloaded) == {"data/train-0.jsonl"}


def test_data_set_of_a_script_is_read_as_the_hub_has_converted_it(hub, prompts):
    hub.files["own/script", "main"] = {"script.py": b"raise SystemExit"}
    hub.files["own/script", "refs/convert/parquet"] = {
        "stories/test/0.jsonl": LINES,
        "news/test/0.jsonl": b"{}",
    }
    asked = prompts(
        "own/script", "--num-prompts", "5", "--hf-subset", "stories", "--hf-split", "test"
    )
    assert sorted(asked) == [row["turns"][0] for row in ROWS]


def test_name_that_the_hub_does_not_have_is_refused_in_one_line(prompts):
    said = prompts("own/nothing")
    assert said.startswith(
        "loadgen dataset: --dataset-path: own/nothing cannot be loaded from the hub ("
    )
    assert "\n" not in said


def test_sharegpt_without_a_path_is_the_published_file(hub, prompts):
    turns = [
        {"from": "human", "value": "Where is the harbour, please?"},
        {"from": "gpt", "value": "Down the hill."},
    ]
    file = "ShareGPT_V3_unfiltered_cleaned_split.json"
    content = json.dumps([{"id": "a", "conversations": turns}]).encode()
    hub.files["anon8231489123/ShareGPT_Vicuna_unfiltered", "main"] = {file: content}
    for _ in range(2):
        assert prompts(None, "--num-prompts", "1", name="sharegpt") == [
            "Where is the harbour, please?"
        ]
    assert hub.downloaded == [file]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["run", "--engine", "sim", "--tokenizer", "own/model"],
            "run: --tokenizer: own/model is not a path",
        ),
        (
            [
                "dataset",
                "--dataset-name",
                "hf",
                "--dataset-path",
                "own/rows",
                "--tokenizer",
                str(SIMULATOR),
            ],
            "dataset: --dataset-path: own/rows is not a file or folder",
        ),
    ],
    ids=["a tokenizer", "a data set"],
)
def test_hub_that_never_answers_is_asked_once_for_the_time_of_its_own_setting(
    tmp_path, command, said
):
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as silent:  # the system accepts connections, and nobody reads them
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        own = {
            "HF_ENDPOINT": url,
            "HF_HUB_ETAG_TIMEOUT": "1",
            "HF_HOME": str(tmp_path),
            "no_proxy": "127.0.0.1",
        }
        done = subprocess.run(
            [*LOADGEN, *command],
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        silent.setblocking(False)
        asked = []
        with contextlib.suppress(BlockingIOError):
            while True:
                with silent.accept()[0] as connection:
                    asked.append(connection.recv(4))
    assert asked.count(b"HEAD") == 1
    (line,) = (line for line in done.stderr.splitlines() if "preparing" not in line)
    assert line.startswith(
        f"loadgen {said}, not in the cache of the hub, and the hub cannot be reached ({url} does "
    )
    assert done.returncode == 2
