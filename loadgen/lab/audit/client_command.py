"""ClientCommand: how a page says that its load was sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from loadgen.lab.audit.shell import ShellCommand, flags_of

# The words with which a client is started, and the port at which it looks for a server unless it is told.
CLIENTS = {
    ("vllm", "bench", "serve"): "8000",
    ("python3", "-m", "sglang.bench_serving"): "30000",
    ("python", "-m", "sglang.bench_serving"): "30000",
    ("python3", "benchmark_serving.py"): "8000",
    ("python", "benchmark_serving.py"): "8000",
    ("guidellm", "benchmark"): "",
    ("loadgen", "run"): "8000",
}


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """One command that sends a load.

    Attributes:
        flags: Their values by name, without dashes before them, with dashes in them.
        text: As printed, on one line.
        at: How far into the page it stands, in characters.
        default_port: The port that it takes unless a flag says; empty where there is none.
        starts_servers: Whether servers were started for it, at any port: it is loadgen's.
    """

    flags: Mapping[str, str]
    text: str
    at: int
    default_port: str
    starts_servers: bool = False

    @property
    def model(self) -> str:
        """The model's name in its requests; empty where it is the server's own, or a variable of the script."""
        found = self.flags.get("served-model-name") or self.flags.get("model", "")
        return "" if "$" in found else found

    @property
    def port(self) -> str:
        """The port to which it connects; empty where nothing tells."""
        url = self.flags.get("base-url") or self.flags.get("target", "")
        if "$" in url:
            return ""
        return str(urlsplit(url).port or "") if url else self.flags.get("port", self.default_port)

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        return self.flags.get("dataset-name", "")

    def number(self, *names: str) -> int | None:
        """The first of these flags that has a whole number."""
        return next((int(value) for name in names if (value := self.flags.get(name, "")).isdigit()), None)


def client_command(line: ShellCommand) -> ClientCommand | None:
    """The load that a command sends; None if it is another command."""
    for client, port in CLIENTS.items():
        if line.words[: len(client)] == client or _ends(line.words, client):
            flags, _ = flags_of(line.words[len(client) :])
            return ClientCommand(flags, line.text, line.at, port, client == ("loadgen", "run"))
    return None


def _ends(words: tuple[str, ...], client: tuple[str, ...]) -> bool:
    return len(words) >= len(client) and client[-1].endswith(".py") and words[1].rpartition("/")[2] == client[-1]
