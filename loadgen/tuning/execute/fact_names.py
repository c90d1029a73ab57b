"""The names of a store's facts, for readers."""

from loadgen.tuning.spec.strict_model import At

_NAMES: dict[At, str] = {
    ("loadgen",): "version of loadgen",
    ("host",): "machine",
    ("host", "name"): "machine",
    ("host", "cpu"): "processor",
    ("host", "cores"): "processor cores that loadgen may use",
    ("host", "gpus"): "accelerators",
    ("accelerators_from",): "accelerators named by",
    ("builds",): "versions of engines",
    ("data",): "data sets",
    ("questions",): "questions, SHA-256",
}
_OF_DATA = {"path": "file", "bytes": "bytes", "sha256": "SHA-256"}


def fact_name(at: At) -> str:
    """Return the name of a fact, or of a part of it."""
    if at in _NAMES:
        return _NAMES[at]
    kind, of, *part = map(str, at)
    if kind == "builds":
        return f"version of {of}"
    assert kind == "data", at
    return ", ".join([f"data of {of}", *(_OF_DATA[name] for name in part)])
