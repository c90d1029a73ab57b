"""EngineFlags: what a flag of an engine sets, from the engines' own flag tables."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from loadgen.engines.kinds import llamacpp, mindie, sglang, trtllm, vllm
from loadgen.engines.kinds.knob_forms import EnvVariable, Flag, FlagGroup, Switch
from loadgen.engines.kinds.knob_table import KnobTable

TABLES = {
    "vLLM": vllm.TABLE,
    "SGLang": sglang.TABLE,
    "TensorRT-LLM": trtllm.TABLE,
    "MindIE": mindie.TABLE,
    "llama.cpp": llamacpp.TABLE,
}
# Unless a flag says.
PORTS = {"vLLM": "8000", "SGLang": "30000", "TensorRT-LLM": "8000", "llama.cpp": "8080"}
OFF = "off"


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """The flags of one engine.

    Attributes:
        names: Flag, without dashes before it and with dashes in it, to the setting that it is.
        switched_off: Flags that turn a setting off.
        prefixes: Whether a prefix of a flag means that flag.
    """

    names: dict[str, str]
    switched_off: frozenset[str]
    prefixes: bool

    def setting(self, flag: str, value: str) -> tuple[str, str]:
        """Return the engine-neutral setting and its value; the flag itself if no table knows it."""
        if flag not in self.names and self.prefixes and len(flag) > 1:
            completed = [name for name in self.names if name.startswith(flag)]
            if len({self.names[name] for name in completed}) == 1:
                flag = completed[0]
        if flag in self.switched_off:
            return self.names[flag], OFF
        return self.names.get(flag, flag), "" if value.lower() == "true" else value


@cache
def engine_flags(engine: str) -> EngineFlags:
    """Return the flags of an engine; of no engine, those that mean one thing in all."""
    if engine in TABLES:
        return _flags(TABLES[engine])
    tables = [_flags(table) for table in TABLES.values()]
    meanings: dict[str, set[str]] = {}
    for table in tables:
        for name, setting in table.names.items():
            meanings.setdefault(name, set()).add(setting)
    # One letter means something else in every engine.
    names = {
        name: settings.pop()
        for name, settings in meanings.items()
        if len(settings) == 1 and len(name) > 1
    }
    return EngineFlags(names, frozenset().union(*(table.switched_off for table in tables)), False)


def likely_engines(flags: Iterable[str]) -> frozenset[str]:
    """Return the engines that know most of the flags; all engines if none knows any."""
    # Shorter ones mean something in every engine.
    long_flags = [flag for flag in flags if len(flag) > 2]
    counts = {
        engine: len([flag for flag in long_flags if flag in engine_flags(engine).names])
        for engine in TABLES
    }
    return frozenset(engine for engine, count in counts.items() if count == max(counts.values()))


@cache
def variables() -> dict[str, str]:
    """Return the environment variables that are settings: name to setting."""
    settings: dict[str, str] = {}
    for table in TABLES.values():
        for knob, forms in table.forms.items():
            settings |= {form.name: knob for form in forms if isinstance(form, EnvVariable)}
    return settings


def _flags(table: KnobTable) -> EngineFlags:
    names: dict[str, str] = {}
    off: set[str] = set()
    for knob, forms in table.forms.items():
        for form in forms:
            for flag, aliases in form.flags().items():
                is_group = isinstance(form, FlagGroup)
                # The value of a group's flag is a part of the knob, so that the flag is a setting
                # of its own.
                setting = _bare(flag) if is_group else knob
                if isinstance(form, Switch) and form.off and flag == form.off[0]:
                    if len(form.off) > 1:
                        continue  # a value of a flag that has others
                    off.add(_bare(flag))
                for name in (flag, *aliases):
                    if isinstance(form, Flag) or _bare(name) not in names:
                        names[_bare(name)] = setting
    return EngineFlags(names, frozenset(off), table.abbreviates)


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")
