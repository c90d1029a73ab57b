"""The download of a published file is complete and correct despite network failures."""

import hashlib
import http.server
import shutil
import socket
import threading

import pytest

from loadgen.errors import BadInput, Unreachable
from loadgen.workload.files import download
from loadgen.workload.files.download import ATTEMPTS, Part, Published, fetch

CONTENT = bytes(range(256)) * 4000  # 1,024,000 bytes: 1 MB
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PUBLISHED = Published("/data/set.json", 1)
TAG = '"one"'


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT, and does one fault after another first.

    Attributes:
        faults: What becomes of the next requests: a status, or "cut" (half of what is asked, then
            the connection ends).
        asked: The Range of each request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults, self.asked = [], []
        self.content, self.tag, self.ranges, self.told, self.length = CONTENT, TAG, True, None, None
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """A client that goes before all was sent has its reasons."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        if self.path.startswith(("/moved", "/circle", "/away")):
            self.send_response(302)
            where = self.path.removeprefix("/moved")
            self.send_header(
                "Location", "file:///etc/hosts" if where.startswith("/away") else where
            )
            self.end_headers()
            return
        asked = self.headers["Range"]
        server.asked.append(asked)
        fault = server.faults.pop(0) if server.faults else None
        if isinstance(fault, int):
            self.send_error(fault)
            return
        start, size = 0, len(server.content)
        if asked and server.ranges and self.headers["If-Range"] == server.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", server.told or f"bytes {start}-{size - 1}/{size}")
        if server.tag:
            self.send_header("ETag", server.tag)
        self.send_header("Content-Length", server.length or str(size - start))
        self.end_headers()
        self.wfile.write(
            server.content[start : start + (size - start) // 2 if fault == "cut" else size]
        )

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def begun(folder, content, tag=TAG):
    """What an earlier attempt has left."""
    (folder / "set.json.part").write_bytes(content)
    (folder / "set.json.part.etag").write_text(tag)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- the whole file


def test_download_leaves_only_the_file(server, tmp_path):
    found = fetch(PUBLISHED, tmp_path / "new", server.url)
    assert found.path.read_bytes() == CONTENT
    assert found.sha256 == SHA256
    assert names(tmp_path / "new") == ["set.json"]


def test_progress_is_told_up_to_the_whole(server, tmp_path):
    told = []
    fetch(PUBLISHED, tmp_path, server.url, lambda done, total: told.append((done, total)))
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_file_that_is_there_whole_is_left_alone(server, tmp_path):
    fetch(PUBLISHED, tmp_path, server.url)
    found = fetch(PUBLISHED, tmp_path, "http://127.0.0.1:1")
    assert found == download.Fetched(tmp_path / "set.json", None)
    assert len(server.asked) == 1


def test_redirects_are_followed_also_when_it_goes_on(server, tmp_path):
    begun(tmp_path, CONTENT[:1000])
    fetch(Published("/moved/data/set.json", 1), tmp_path, server.url)
    assert server.asked == ["bytes=1000-"]
    assert (tmp_path / "set.json").read_bytes() == CONTENT


# -- going on


def test_a_connection_that_is_cut_is_gone_on_with(server, tmp_path):
    server.faults = ["cut", "cut"]
    found = fetch(PUBLISHED, tmp_path, server.url)
    assert found.sha256 == SHA256
    half = len(CONTENT) // 2
    assert server.asked == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_partial_download_is_resumed(server, tmp_path):
    begun(tmp_path, CONTENT[:400_000])
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256
    assert server.asked == ["bytes=400000-"]


@pytest.mark.parametrize("tag", ['"two"', 'W/"one"', None])
def test_changed_content_starts_the_download_again(server, tmp_path, tag):
    server.tag, server.faults = tag, ["cut"]
    begun(tmp_path, b"other" * 1000)
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256


def test_a_weak_or_missing_tag_is_never_asked_to_go_on(server, tmp_path):
    server.tag, server.faults = 'W/"one"', ["cut"]
    fetch(PUBLISHED, tmp_path, server.url)
    assert server.asked == [None, None]


def test_a_server_that_knows_no_ranges_begins_again(server, tmp_path):
    server.ranges = False
    begun(tmp_path, CONTENT[:1000])
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256
    assert server.asked == ["bytes=1000-"]


def test_a_part_that_is_whole_already_is_taken_as_it_is(server, tmp_path):
    begun(tmp_path, CONTENT)
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_thrown_away(server, tmp_path):
    begun(tmp_path, CONTENT + b"more")
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256
    assert server.asked == [f"bytes={len(CONTENT) + 4}-", None]


def test_download_gives_up_and_keeps_the_part(server, tmp_path):
    server.faults = ["cut"] * ATTEMPTS
    with pytest.raises(Unreachable, match=f"was cut {ATTEMPTS} times.* run the same command again"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert names(tmp_path) == ["set.json.part", "set.json.part.etag"]
    assert fetch(PUBLISHED, tmp_path, server.url).sha256 == SHA256


# -- what is refused


def test_a_range_that_was_not_asked_for_is_refused(server, tmp_path):
    begun(tmp_path, CONTENT[:1000])
    server.told = f"bytes 900-{len(CONTENT) - 1}/{len(CONTENT)}"
    with pytest.raises(Unreachable, match="from byte 900 on"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert (tmp_path / "set.json.part").read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("status", [401, 403, 404, 407, 429, 500, 503])
def test_a_status_is_told_with_the_remedy(server, tmp_path, status):
    server.faults = [status]
    with pytest.raises(Unreachable, match=f"/data/set.json: {status} .*; set HTTPS_PROXY"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", ["/circle/set.json", "/away/set.json"])
def test_a_redirect_that_leads_nowhere_is_told_in_one_line(server, tmp_path, path):
    with pytest.raises(
        Unreachable, match=r"set\.json: 302 with redirects that are .*; set "
    ) as told:
        fetch(Published(path, 1), tmp_path, server.url)
    assert "\n" not in str(told.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("length", ["many", "-5", "1e6", "²"])
def test_a_size_that_is_none_is_told(server, tmp_path, length):
    server.length = length.encode().decode("latin-1")
    with pytest.raises(Unreachable, match="content of unknown size"):
        fetch(PUBLISHED, tmp_path, server.url)


def test_proxy_page_is_refused_and_the_part_kept(server, tmp_path):
    begun(tmp_path, CONTENT[:1000], tag="")
    server.content = b"<html>log in</html>"
    with pytest.raises(Unreachable, match="19 bytes from byte 0 on, and 1 MB are published"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert (tmp_path / "set.json.part").read_bytes() == CONTENT[:1000]


def test_refused_connection_is_reported_with_the_remedy(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match=r"Connection refused; set HTTPS_PROXY .*HF_ENDPOINT"):
            fetch(PUBLISHED, tmp_path, f"http://127.0.0.1:{unused.getsockname()[1]}")


def test_a_proxy_that_refuses_is_told_with_the_remedy(server, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", server.url)  # it knows no CONNECT
    with pytest.raises(Unreachable, match=r"Tunnel connection failed: 501 .*; set HTTPS_PROXY"):
        fetch(PUBLISHED, tmp_path, "https://nowhere.invalid")


ODD = [
    "nowhere",
    "http://",
    "ftp//x",
    "ftp://x",
    "file:///etc",
    "http://a b",
    "http://[::1",
    "http://a:0",
    "http://a?b",
]


@pytest.mark.parametrize("hub", [*ODD, "http://a\nb", "http://\u00e9", ""])
def test_an_address_that_is_none_is_refused(tmp_path, hub):
    with pytest.raises(
        BadInput, match=r"^HF_ENDPOINT: invalid http or https URL .*; write https://HOST"
    ):
        fetch(PUBLISHED, tmp_path, hub)
    assert names(tmp_path) == []


@pytest.mark.parametrize("tag", ["one", '"one', '"a"b"', 'W/"one"', '"one"\r\nX: y', '"\x00"'])
def test_damaged_etag_is_refused_and_the_part_kept(server, tmp_path, tag):
    begun(tmp_path, CONTENT[:1000], tag)
    with pytest.raises(BadInput, match=r"^--to: .*\.part\.etag is damaged: .*; remove both"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert (tmp_path / "set.json.part").read_bytes() == CONTENT[:1000]
    assert server.asked == []


def test_another_file_of_that_name_is_not_overwritten(server, tmp_path):
    (tmp_path / "set.json").write_text("mine")
    with pytest.raises(
        BadInput, match=r"set\.json exists with 4 bytes, and 1 MB are published; move it away"
    ):
        fetch(PUBLISHED, tmp_path, server.url)
    assert (tmp_path / "set.json").read_text() == "mine"


def test_too_little_room_is_refused_before_anything_is_taken(server, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 1000))
    with pytest.raises(BadInput, match="--to: 1,024,000 bytes are needed, and 1,000 are free"):
        fetch(PUBLISHED, tmp_path, server.url)
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_one_is_refused(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"--to: .*cannot be written"):
        fetch(PUBLISHED, tmp_path / "file", server.url)


def test_two_at_once_do_not_mix(server, tmp_path):
    with (
        Part(tmp_path / "set.json"),
        pytest.raises(BadInput, match="another process is downloading"),
    ):
        fetch(PUBLISHED, tmp_path, server.url)


def test_published_sharegpt_file_has_the_published_size():
    assert download.SHAREGPT.name == "ShareGPT_V3_unfiltered_cleaned_split.json"
    assert download.SHAREGPT.has_size(673_000_000)
    assert not download.SHAREGPT.has_size(125_509_632)
