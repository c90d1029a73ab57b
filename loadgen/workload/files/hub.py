"""The Hugging Face hub, or the mirror that HF_ENDPOINT names: whether it answers."""

from loadgen.errors import first_line


def why_unavailable() -> str | None:
    """Ask the hub once whether it answers; returns why it cannot be used, or None.

    HF_HUB_ETAG_TIMEOUT (10 s) bounds the wait. huggingface_hub itself waits for a silent hub for
    almost seven minutes.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        # Any status is an answer.
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception as error:  # noqa: BLE001 - the errors of its HTTP library have no common class
        return f"{constants.ENDPOINT} does not answer: {first_line(error)}"
    return None
