"""A server that behaves as its switches say: `python fake_engine_server.py --port P --model NAME
[switches]`.
"""

import argparse
import json
import mmap
import os
import signal
import socket
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHUNK = b"x" * 79 + b"\n"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--exit", type=int, help="at start, with this code")
    parser.add_argument("--say", default="", help="at start, on stderr")
    parser.add_argument("--never-listen", action="store_true")
    parser.add_argument("--silent", action="store_true", help="no log at all")
    parser.add_argument("--flood", action="store_true", help="listen only once the log was cut")
    parser.add_argument(
        "--double-fork",
        choices=("tagged", "bare"),
        help="leave a daemon, with or without environment",
    )
    parser.add_argument(
        "--litter",
        action="store_true",
        help="a file, and a segment of shared memory; says their paths",
    )
    parser.add_argument(
        "--zombie", action="store_true", help="have a child that has ended and is never reaped"
    )
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument(
        "--share-port", action="store_true", help="let others of the user listen there too"
    )
    parser.add_argument("--health", type=int, default=200)
    parser.add_argument("--serves", help="another name than the model's")
    parser.add_argument("--no-token", action="store_true")
    parser.add_argument(
        "--dies-inside", action="store_true", help="its worker, at the first prompt"
    )
    parser.add_argument("--chat-only", action="store_true")
    parser.add_argument("--refuse", action="store_true", help="every prompt, with 400")
    parser.add_argument("--hang", action="store_true", help="at the first prompt")
    parser.add_argument("--exit-when-flushed", type=int, help="with this code")
    parser.add_argument("--busy", type=int, default=0, help="so many flushes are refused")
    parser.add_argument("--sick-when-flushed", action="store_true")
    parser.add_argument("--hang-when-flushed", action="store_true", help="at the next prompt")
    return parser.parse_args()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    switches: argparse.Namespace
    mapped: mmap.mmap | None = None

    def server_bind(self) -> None:
        if self.switches.share_port:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self, status: int, told: Any) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        switches = self.server.switches
        if self.path == "/health":
            self.answer(switches.health, {})
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": switches.serves or switches.model}]})
        elif self.path == "/told":
            self.answer(
                200,
                {
                    "version": "9.9",
                    "args": {"port": switches.port, "busy": 7, "model": switches.model},
                },
            )
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        switches = self.server.switches
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/flush":
            if switches.exit_when_flushed is not None:
                print("torch.OutOfMemoryError: CUDA out of memory", file=sys.stderr, flush=True)
                os._exit(switches.exit_when_flushed)
            switches.busy -= 1
            switches.hang = switches.hang_when_flushed
            if switches.sick_when_flushed:
                switches.health = 503
            self.answer(400 if switches.busy >= 0 else 200, {"busy": switches.busy})
        elif switches.hang:
            print("asked", file=sys.stderr, flush=True)
            signal.pause()
        elif switches.dies_inside:
            print("torch.OutOfMemoryError: CUDA out of memory", file=sys.stderr, flush=True)
            switches.health = 503
            self.answer(500, {"error": "no worker"})
        elif switches.refuse:
            self.answer(400, {"error": "no prompts today"})
        elif switches.no_token:
            self.answer(200, {"choices": [{"text": ""}], "usage": {"completion_tokens": 0}})
        elif "chat" in self.path:
            self.answer(200, {"choices": [{"message": {"content": "Hi"}}]})
        else:
            self.answer(404, {}) if switches.chat_only else self.answer(
                200, {"choices": [{"text": "Hi"}]}
            )

    def log_message(self, *_: object) -> None:
        pass


def daemon(bare: bool) -> None:
    """Leave a process in a session of its own whose parent has ended; says its id."""
    reading, writing = os.pipe()  # ends once the daemon has said its id and is what it will be
    between = os.fork()
    if between:
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        os.waitpid(between, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    print(f"daemon {os.getpid()}", flush=True)
    endless = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    os.execve(sys.executable, endless, {} if bare else dict(os.environ))


def litter() -> mmap.mmap:
    """Leave a temporary file and a segment of shared memory, which is mapped as long as the
    result lives.
    """
    _, path = tempfile.mkstemp()
    descriptor, segment = tempfile.mkstemp(dir="/dev/shm", prefix="fake-")
    os.ftruncate(descriptor, 4096)
    print(f"littered {path} {segment}", flush=True)
    return mmap.mmap(descriptor, 4096)


def flood() -> None:
    """Write until the log becomes shorter."""
    before = written = 0
    print("the first line", flush=True)
    while (size := os.fstat(1).st_size) >= before and written < 2 << 30:
        before = size
        written += os.write(1, CHUNK * 10_000)


def main() -> None:
    switches = parse()
    if switches.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not switches.silent:
        print(switches.say or "loading weights", file=sys.stderr, flush=True)
    if switches.exit is not None:
        sys.exit(switches.exit)
    if switches.double_fork:
        daemon(switches.double_fork == "bare")
    Server.mapped = litter() if switches.litter else None
    if switches.zombie and not os.fork():
        os._exit(0)
    if switches.flood:
        flood()
    while switches.never_listen:
        signal.pause()
    Server.switches = switches
    with Server((switches.host, switches.port), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
