"""Flags of load generators for websites and of forks, with their equivalents in loadgen.

They are not accepted, since most differ in detail; an error message names the equivalent.
"""

FORKS = {"--run-eval": "a tool for the quality of answers: loadgen does not judge them"}
WEB = {  # Locust, k6, wrk and others
    **dict.fromkeys(
        ("--vus", "--clients", "--connections"),
        "--max-concurrency, the requests in flight; --users, if they think",
    ),
    **dict.fromkeys(("--rps", "--qps", "--arrival-rate"), "--request-rate"),
    **dict.fromkeys(("--requests", "--iterations"), "--num-prompts"),
    "--run-time": "--duration",
}


def equivalent(name: str) -> str | None:
    """Describe what replaces a flag; None if none of these tools is known to have it."""
    for tool, words in (("a fork of vLLM's tool", FORKS), ("other tools", WEB)):
        if name in words:
            return f"this is a flag of {tool}; use {words[name]}"
    return None
