"""The APIs of `--backend` that are built in: their usual paths, and where the `Api` of each is.

Other packages add theirs through the entry-point group `loadgen.endpoints`.
"""

from msgspec import Struct

V1 = "/v1"
_GENERATION, _POOLING = (f"loadgen.workload.endpoints.{name}" for name in ("generation", "pooling"))


class Backend(Struct, frozen=True):
    """A built-in API.

    Attributes:
        path: Its usual path.
        place: Its `Api`, as "module:attribute".
        generates: Whether its answers are tokens; else they are embeddings or scores in one piece.
    """

    path: str
    place: str
    generates: bool = True

    @property
    def ending(self) -> str:
        """How its paths end."""
        return self.path.removeprefix(V1)


COMPLETIONS = Backend("/v1/completions", f"{_GENERATION}:COMPLETIONS")
BACKENDS = {
    "openai-chat": Backend("/v1/chat/completions", f"{_GENERATION}:CHAT"),
    "openai-responses": Backend("/v1/responses", f"{_GENERATION}:RESPONSES"),
    "anthropic": Backend("/v1/messages", f"{_GENERATION}:MESSAGES"),
    "sglang-native": Backend("/generate", f"{_GENERATION}:GENERATE"),
    "llama.cpp-native": Backend("/completion", "loadgen.workload.endpoints.llamacpp:COMPLETION"),
    "openai-embeddings": Backend("/v1/embeddings", f"{_POOLING}:EMBEDDINGS", generates=False),
    "openai-embeddings-chat": Backend(
        "/v1/embeddings", f"{_POOLING}:CHAT_EMBEDDINGS", generates=False
    ),
    "infinity-embeddings": Backend("/v1/embeddings", f"{_POOLING}:INFINITY", generates=False),
    "vllm-pooling": Backend("/pooling", f"{_POOLING}:POOLING", generates=False),
    "vllm-rerank": Backend("/v1/rerank", f"{_POOLING}:RERANK", generates=False),
    "openai": COMPLETIONS,
    **dict.fromkeys(("vllm", "lmdeploy", "scalellm", "sglang", "llama.cpp"), COMPLETIONS),
}
# A longer ending before that which it contains.
ENDINGS = sorted({backend.ending for backend in BACKENDS.values()}, key=len, reverse=True)
WITHOUT_TOKENS = {name for name, backend in BACKENDS.items() if not backend.generates}
