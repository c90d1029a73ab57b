"""Checks of the calls to a server beside the load."""

import re

from loadgen.config.run_fields import RunFields
from loadgen.config.server_calls import PROFILE_S
from loadgen.errors import BadInput
from loadgen.util.redaction import redact_user


def check(settings: RunFields) -> None:
    """Check the paths and bodies of calls, and that flags of the profiler belong to one.

    Raises:
        BadInput: The first value that cannot be used.
    """
    for path in settings.call_before:
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
            raise BadInput("--call-before", f"{path!r} is not a path", "write for example /reset_mm_cache")
    if not isinstance(settings.profile_body, dict | None):
        raise BadInput("--profile-body", "not a JSON object", "write for example '{\"num_steps\": 5}'")
    for url in settings.profile_url:
        if not re.fullmatch(r"https?://[!-~]+", url):
            raise BadInput("--profile-url", f"{redact_user(url)!r} is not a URL", "write http://HOST:PORT")
    if not settings.profile:
        for name in ("profile_body", "profile_url", "profile_batch_threshold"):
            if getattr(settings, name) != getattr(RunFields, name):
                problem = "missing, although other flags say what to profile"
                raise BadInput("--profile", problem, "add it, or leave them out")
    if settings.profile_batch_threshold is None:
        if settings.profile_duration != PROFILE_S:
            remedy = "add --profile-batch-threshold; without it the profiler runs until the run has ended"
            raise BadInput("--profile-duration", "given without --profile-batch-threshold", remedy)
    elif settings.server_metrics == ("off",):
        remedy = "leave out --server-metrics off, or the threshold"
        raise BadInput("--profile-batch-threshold", "needs the server's metrics, which are off", remedy)
