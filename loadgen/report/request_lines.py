"""Request lines: what of the bodies of requests decides how figures compare, as lines of a report."""

from collections.abc import Iterator

from loadgen.report.result import RunResult
from loadgen.workload import endpoints
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS


def lines(result: RunResult) -> Iterator[str]:
    """Write what the server adds to the requests that another tool would have sent otherwise."""
    settings = result.provenance.settings
    api, body = endpoints.find(settings), settings.extra_body or {}
    if api is CHAT and settings.render_chat_template is not None:
        yield "The prompts have the chat template around them, and the server of a chat applies it again."
    if api is COMPLETIONS and settings.repetition_penalty is None and "repetition_penalty" not in body:
        yield (
            "No repetition_penalty was sent, so the model's own applied; vllm bench serve sends 1.0 with completions "
            "(--repetition-penalty 1)."
        )
