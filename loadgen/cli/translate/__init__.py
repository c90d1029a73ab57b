"""Commands of other benchmarks, translated into commands of loadgen.

Each tool has a table of its flags, and a function that reads those that mean something together.
What is not the same is said: nothing is translated in silence.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from loadgen.cli.compat import OLD_DATASET, TRANSLATED
from loadgen.cli.translate import shell_words
from loadgen.cli.translate.aiperf import AIPERF, GENAI
from loadgen.cli.translate.engine_scripts import SGLANG, VLLM_OFFLINE, VLLM_SERVING
from loadgen.cli.translate.evalscope import EVALSCOPE
from loadgen.cli.translate.flag_table import Given, Tool, apply, read
from loadgen.cli.translate.guidellm import GUIDELLM
from loadgen.cli.translate.inference_perf import INFERENCE_PERF
from loadgen.cli.translate.llmperf import LLMPERF
from loadgen.cli.translate.shell_words import Operator
from loadgen.cli.translate.translation import Translation, read_yaml
from loadgen.errors import BadInput

TOOLS = dict(
    zip(TRANSLATED, (AIPERF, GENAI, GUIDELLM, INFERENCE_PERF, EVALSCOPE, LLMPERF), strict=True)
)
KNOWN = (*TOOLS.values(), VLLM_OFFLINE, VLLM_SERVING, SGLANG)
PROFILES = ("constant", "poisson", "concurrent", "synchronous", "throughput", "sweep")
OR_TRANSLATE = "or give the whole command to `loadgen translate`"
REMEDY = (
    "give a whole command of AIPerf, genai-perf, guidellm, evalscope perf, llmperf, vLLM or "
    "SGLang in quotes, or a file of inference-perf or guidellm"
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
    settings = _settings(content)
    tool = next((tool for tool in KNOWN if settings.keys() & {*tool.file_keys}), None)
    if tool is not None:
        return _of_file(tool, settings)
    words = _innermost(shell_words.split(content))
    found = _command(words)
    if found is None and (typed := _container(words)):
        return _of_words(GUIDELLM, typed, Translation(GUIDELLM.title, typed))
    if found is None:
        first = content.strip().partition("\n")[0][:60]
        raise BadInput("command", f"{first!r} is no command of a known tool", REMEDY)
    tool, begin, end = found
    environment = {
        match[1]: match[2] for word in words[:begin] if (match := ASSIGNMENT.fullmatch(word))
    }
    return _of_words(
        tool, words[begin:end], Translation(tool.title, words[max(0, begin - 3) : end], environment)
    )


def for_run(name: str, words: Sequence[str]) -> Translation:
    """Translate the words behind `loadgen run --compat NAME`; flags that only loadgen has stay.

    Raises:
        BadInput: No command asks for the same load, or a value is wrong.
    """
    tool = TOOLS[name]
    for command in tool.commands:  # it may be typed whole
        if [*words[: len(command.split())]] == command.split():
            words = words[len(command.split()) :]
            break
    result = _of_words(tool, words, Translation(tool.title, words, os.environ, own_flags=True))
    if result.blocked:
        remedy = "`loadgen translate` prints the nearest command"
        raise BadInput(
            "--compat", f"no command asks for the same load: {result.blocked[0]}", remedy
        )
    return result


def equivalent(name: str, words: Sequence[str]) -> str | None:
    """Describe what to do with a flag of these tools, or with a profile of guidellm; None if none
    has it.

    Args:
        name: The flag.
        words: The whole command line: the tool that knows most of its flags is meant.
    """
    if name in PROFILES:
        return f"this is a profile of guidellm: add --compat guidellm, {OR_TRANSLATE}"
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    known = {
        tool: sum(TOOLS[tool].flag(flag) is not None for flag in flags)
        for tool in TOOLS
        if TOOLS[tool].flag(name) is not None
    }
    if not known:
        return None
    best = [tool for tool, count in known.items() if count == max(known.values())]
    if name == OLD_DATASET and max(known.values()) == 1:
        return (
            "this is a flag of an older vLLM; use --dataset-name sharegpt --dataset-path FILE; of "
            "evalscope perf: add --compat evalscope"
        )
    titles = " or ".join(TOOLS[tool].title for tool in best)
    flag = TOOLS[best[0]].flag(name)
    here = re.match("`(--[^`]*)`", flag.here) if flag is not None else None
    about = f", {here[1]} here" if here else ""
    return f"this is a flag of {titles}{about}: add --compat {' or '.join(best)}, {OR_TRANSLATE}"


def _of_words(tool: Tool, words: Sequence[str], result: Translation) -> Translation:
    given = read(tool, words, result)
    path = next((word for word in words if _is_settings(word)), None)
    if tool.in_file is not None and path is not None:
        values = tool.in_file(Path(path).read_text(encoding="utf-8"))
        typed = {name: given.all(name) for name in given if path not in given.all(name)}
        given = Given(values | typed)
    return _translated(tool, given, result)


def _is_settings(word: str) -> bool:
    """Whether a word names a YAML or JSON file of this machine."""
    return word.endswith((".yaml", ".yml", ".json")) and Path(word).is_file()


def _of_file(tool: Tool, settings: dict[str, Any]) -> Translation:
    values = {} if tool.in_file is None else tool.in_file(json.dumps(settings, default=str))
    return _translated(tool, Given(values), Translation(tool.title, values))


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


def _settings(text: str) -> dict[str, Any]:
    """Return the settings in a YAML file, also those in a ConfigMap or in the values of a chart;
    none of another text.
    """
    if not re.search(r"^\s*\w+:", text, re.MULTILINE) or "\n" not in text:
        return {}
    root = read_yaml(text)
    if isinstance(root, dict) and root.get("kind") == "ConfigMap":
        root = next(map(read_yaml, root["data"].values()))
    if isinstance(root, dict) and isinstance(root.get("config"), dict):
        root = root["config"]
    return root if isinstance(root, dict) else {}


def _container(words: Sequence[str]) -> list[str]:
    """Return the flags that the variables of guidellm's container stand for."""
    pairs = [match for word in words if (match := ASSIGNMENT.fullmatch(word))]
    flags = [
        (match[1].removeprefix("GUIDELLM_").replace("_", "-").lower(), match[2])
        for match in pairs
        if re.match("GUIDELLM_[A-Z]", match[1])
    ]
    return [word for name, value in flags for word in (f"--{name}", value)]


def _innermost(words: list[str]) -> list[str]:
    """Return the words of a command that is one word of these, as in `bash -c '...'` or X='...';
    else these.
    """
    for word in words if _command(words) is None else ():
        assignment = ASSIGNMENT.fullmatch(word)
        inner = shell_words.split(assignment[2] if assignment else word)
        if _command(inner) is not None:
            return inner
    return words


def _command(words: Sequence[str]) -> tuple[Tool, int, int] | None:
    """Find the first command of a known tool: the tool, and where its flags begin and end."""
    for place, word in enumerate(words):
        if isinstance(word, Operator):
            continue
        name = PurePath(word).name
        if shell_words.is_variable(name):  # a variable with the path of the tool
            name = name.strip("${}").lower().replace("_", "-")
        for tool in KNOWN:
            for command in tool.commands:
                parts = command.split()
                begin = place + len(parts)
                is_alone = begin >= len(words) or isinstance(words[begin], Operator)
                if [name, *words[place + 1 : begin]] == parts and not is_alone:
                    ends = (
                        at for at in range(begin, len(words)) if isinstance(words[at], Operator)
                    )
                    return tool, begin, next(ends, len(words))
    return None
