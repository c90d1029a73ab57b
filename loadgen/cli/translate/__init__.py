"""Commands of other benchmarks, translated into commands of loadgen.

Each tool has a table of its flags, and a function that reads those that mean something together.
What is not the same is said: nothing is translated in silence.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from loadgen.cli.translate import shell_words
from loadgen.cli.translate.aiperf import AIPERF, GENAI
from loadgen.cli.translate.evalscope import EVALSCOPE
from loadgen.cli.translate.flag_table import Given, Tool, apply, read
from loadgen.cli.translate.guidellm import GUIDELLM
from loadgen.cli.translate.inference_perf import INFERENCE_PERF
from loadgen.cli.translate.llmperf import LLMPERF
from loadgen.cli.translate.shell_words import Operator
from loadgen.cli.translate.translation import Translation, read_yaml
from loadgen.cli.translate.vllm_scripts import VLLM_OFFLINE, VLLM_SERVING
from loadgen.errors import BadInput

# By the name of --compat; the last two are known by their commands alone.
TOOLS = {
    "aiperf": AIPERF,
    "genai-perf": GENAI,
    "guidellm": GUIDELLM,
    "inference-perf": INFERENCE_PERF,
    "evalscope": EVALSCOPE,
    "llmperf": LLMPERF,
}
KNOWN = (*TOOLS.values(), VLLM_OFFLINE, VLLM_SERVING)
REMEDY = (
    "give a whole command of AIPerf, genai-perf, guidellm, evalscope perf, llmperf or vLLM in "
    "quotes, or a file of inference-perf or guidellm"
)
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def translate(text: str) -> Translation:
    """Translate a command, a script with one, or a file of settings.

    Args:
        text: The command as it is typed, the content of a file, or the path of one.

    Raises:
        BadInput: It is no command or file of a known tool.
    """
    content = _content(text)
    if (tool := _tool_of_file(content)) is not None and tool.in_file is not None:
        given = Given(tool.in_file(content))
        return _translated(tool, given, Translation(tool.title, given))
    words = shell_words.split(content)
    found = _command(words)
    if found is None:
        raise BadInput(
            "command", f"{content.split(chr(10))[0][:60]!r} is none of a known tool", REMEDY
        )
    tool, begin, end = found
    environment = {
        match[1]: match[2] for word in words[:begin] if (match := ASSIGNMENT.fullmatch(word))
    }
    return of_words(tool, words[begin:end], environment, words[max(0, begin - 3) : end])


def of_words(
    tool: Tool,
    words: Sequence[str],
    environment: dict[str, str] | None = None,
    written: Sequence[str] = (),
) -> Translation:
    """Translate the words of a command line.

    Args:
        tool: The tool.
        words: Its words behind the name of the command.
        environment: The variables that are set in front of it.
        written: The words with the name of the command.
    """
    result = Translation(tool.title, written or words, environment)
    path = next((word for word in words if word.endswith((".yaml", ".yml"))), None)
    if tool.in_file is not None and path is not None and Path(path).is_file():
        given = Given(tool.in_file(Path(path).read_text(encoding="utf-8")))
    else:
        given = read(tool, words, result)
    return _translated(tool, given, result)


def _translated(tool: Tool, given: Given, result: Translation) -> Translation:
    try:
        apply(tool, given, result)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadInput(
            "command", f"a value of {tool.title} cannot be read ({error})", "correct the command"
        ) from error
    return result


def _content(text: str) -> str:
    """Return the content of a file, if the text is its path."""
    if "\n" in text or " " in text.strip() or not Path(text).is_file():
        return text
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("command", f"{text}: {error}", "name a readable text file") from error


def _tool_of_file(text: str) -> Tool | None:
    """Return the tool whose settings a YAML file has, or None."""
    if not re.search(r"^\s*\w+:", text, re.MULTILINE) or "\n" not in text:
        return None
    root = read_yaml(text)
    if not isinstance(root, dict):
        return None
    return next((tool for tool in KNOWN if root.keys() & {*tool.file_keys}), None)


def _command(words: Sequence[str]) -> tuple[Tool, int, int] | None:
    """Find the first command of a known tool: the tool, and where its flags begin and end."""
    for place, word in enumerate(words):
        if isinstance(word, Operator):
            continue
        name = PurePath(word).name
        for tool in KNOWN:
            for command in tool.commands:
                parts = command.split()
                if [name, *words[place + 1 : place + len(parts)]] == parts:
                    begin = place + len(parts)
                    ends = (
                        at for at in range(begin, len(words)) if isinstance(words[at], Operator)
                    )
                    return tool, begin, next(ends, len(words))
    return None
