"""Finish reasons: the words by which servers say why an answer ended, and what they mean."""

# The model ended its answer.
COMPLETE = frozenset(
    (
        *("stop", "eos", "eos_token", "stop_sequence", "stop_token", "end_turn", "end", "complete"),
        *("completed", "done", "tool_calls", "tool_use", "tool_call", "function_call"),
        "pause_turn",
    )
)
# A limit ended it.
CUT = frozenset(
    (
        *("length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_completion_tokens"),
        *("max_length", "model_length", "model_context_window_exceeded", "limit", "incomplete"),
    )
)
# The server gave it up.
FAILED = frozenset(
    (
        *("abort", "aborted", "error", "errored", "failed", "failure", "cancel", "cancelled"),
        *("canceled", "timeout", "timed_out", "server_error", "internal_error", "network_error"),
        *("insufficient_system_resource", "malformed_function_call", "unavailable"),
    )
)
# Its content was held back: a failure if no token came.
FILTERED = frozenset(("content_filter", "safety", "refusal", "recitation", "sensitive", "blocked"))
ENDS = COMPLETE | CUT  # of an answer that came as far as it should
KNOWN = ENDS | FAILED | FILTERED
NO_REASON = ("", "null", "none")  # of servers that write a missing reason as a word


def is_failed_answer(reason: str | None, has_tokens: bool) -> bool:
    """Return whether an answer failed by its finish reason.

    Args:
        reason: The word of the server; None: it gave none.
        has_tokens: Whether any token came.
    """
    if reason is None:
        return False
    word = reason.lower()
    return word in FAILED or (word in FILTERED and not has_tokens)


def is_known(reason: str) -> bool:
    """Return whether the meaning of a finish reason is known."""
    return reason.lower() in KNOWN


def is_cut(reason: str) -> bool:
    """Return whether a finish reason says that a limit ended the answer."""
    return reason.lower() in CUT
