"""Provenance: what is needed to repeat the run."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from loadgen.config.serialize import restored
from loadgen.config.settings import RunSettings
from loadgen.report.result.fields import from_json_values
from loadgen.report.result.tokens import Prediction

SettingName = Annotated[str, Meta(pattern="^[a-z_]+$")]


class Seeds(Struct, frozen=True, kw_only=True):
    """Seeds by what is drawn."""

    arrivals: Annotated[int, "Due times."]
    prompts: Annotated[int, "Prompts."]
    order: Annotated[int, "Their order."]


class Versions(Struct, frozen=True, kw_only=True):
    """Versions of loadgen and of the packages that its numbers depend on; null: not installed."""

    loadgen: Annotated[str | None, "Version of that package."] = None
    aiohttp: Annotated[str | None, "Version of that package."] = None
    uvloop: Annotated[str | None, "Version of that package."] = None
    orjson: Annotated[str | None, "Version of that package."] = None
    numpy: Annotated[str | None, "Version of that package."] = None
    tokenizers: Annotated[str | None, "Version of that package."] = None


class Machine(Struct, frozen=True, kw_only=True):
    """The machine that measured; null: the system does not report the value."""

    system: Annotated[str, "Its operating system."]
    python: Annotated[str, "Version of Python."]
    cpu: Annotated[str | None, "Model of the processor."]
    cores: Annotated[int | None, "Number of cores."]
    usable_cores: Annotated[int, "Number of cores that loadgen may use."]
    open_files_limit: Annotated[list[int], "Soft and hard limit of open files."]
    local_ports: Annotated[
        list[int], "First and last port of outgoing connections; empty: unknown."
    ]
    somaxconn: Annotated[int | None, "Maximum queue length of a listening socket."]
    clock_source: Annotated[str | None, "Clock source of the kernel."]


class Preflight(Struct, frozen=True, kw_only=True):
    """The short requests before the load, which are in no figure."""

    requests: Annotated[int, "How many were sent."]
    answered: Annotated[bool, "Whether one succeeded."]
    omitted: Annotated[list[str], "Fields that the load does without."]
    changes: Annotated[list[str], "What was changed, with the server's words."]


class Engine(Struct, frozen=True, kw_only=True):
    """Facts about the server. Keys that do not apply are missing."""

    base_url: Annotated[str | UnsetType, "Where it listens."] = UNSET
    way: Annotated[
        str | UnsetType,
        "How it was reached: through a proxy, over a Unix socket; missing: directly.",
    ] = UNSET
    server_header: Annotated[str | UnsetType | None, "Its `Server` header; null: it has none."] = (
        UNSET
    )
    version: Annotated[str | UnsetType | None, "Answer of /version; null: none."] = UNSET
    preflight: Annotated[
        Preflight | UnsetType, "What short requests before the load found; missing: none was sent."
    ] = UNSET
    continuous_usage: Annotated[
        Literal["refused"] | UnsetType, "The server refuses --continuous-usage."
    ] = UNSET
    targets: Annotated[list[Engine] | UnsetType, "Each of several servers."] = UNSET
    differ: Annotated[
        list[str] | UnsetType,
        "Settings in which the servers differ, although no difference was requested.",
    ] = UNSET
    name: Annotated[str | UnsetType, "Name of the engine that was started for the run."] = UNSET
    simulated: Annotated[bool | UnsetType, "Whether the engine is loadgen's simulator."] = UNSET
    installed: Annotated[str | UnsetType | None, "Its installed version; null: unknown."] = UNSET
    commands: Annotated[list[str] | UnsetType, "The commands that started it, without secrets."] = (
        UNSET
    )
    differences: Annotated[
        list[str] | UnsetType, "What the engine set differently from the settings."
    ] = UNSET
    trouble: Annotated[
        str | UnsetType | None, "What was wrong with the engine after the run; null: nothing."
    ] = UNSET


class SharedInput(Struct, frozen=True, kw_only=True):
    """What a prefix cache can give back of the prompts made before the clock started."""

    block_size: Annotated[int, "Tokens of a block of the cache."]
    block_size_from: Annotated[str, "Where that is from: a flag, a metric, or the default."]
    tokens: Annotated[
        int | UnsetType, "Tokens of these prompts, as predicted; missing: unknown."
    ] = UNSET
    shared_tokens: Annotated[
        int | UnsetType,
        "Those of them that an earlier prompt has in whole blocks; missing: unknown.",
    ] = UNSET
    unknown: Annotated[str | UnsetType, "Why these are unknown; missing: they are known."] = UNSET
    warm_requests: Annotated[
        int | UnsetType, "Requests that were to warm the cache up, to each server; missing: none."
    ] = UNSET
    warmed_by: Annotated[
        Literal["prefix", "prompt"] | UnsetType,
        "What each of these requests sent; missing: there were none.",
    ] = UNSET


class Prompts(Struct, frozen=True, kw_only=True):
    """Where the prompts come from. Further keys are the data set's own (docs/datasets.md)."""

    sha256: Annotated[
        str,
        "SHA-256 of the prompts made before the clock started; `loadgen dataset` shows the same.",
    ]
    requests: Annotated[int, "Number of prompts made before the clock started."]
    further: Annotated[
        Literal[True] | UnsetType,
        "Whether more were made while the run went on: a closed loop that only a duration ended.",
    ] = UNSET
    sent_before: Annotated[
        int | UnsetType,
        "How many measured prompts the warm-ups or the ready check had also sent; missing without "
        "either.",
    ] = UNSET
    distinct: Annotated[int, "Number of distinct prompts."]
    repeats_answers: Annotated[
        Literal[True] | UnsetType, "Whether any prompt repeats answers of the server."
    ] = UNSET
    classes: Annotated[
        dict[str, int] | UnsetType,
        "Number of these prompts by class (--class, --lora-modules); missing without classes.",
    ] = UNSET
    sources: Annotated[
        list[dict[str, Any]] | UnsetType,
        "Of classes with data sets of their own, each data set, with the names of its classes.",
    ] = UNSET
    images: Annotated[
        int | UnsetType, "Number of images in these prompts; missing without any."
    ] = UNSET
    structured: Annotated[
        int | UnsetType,
        "Number of these prompts whose answers are to be JSON; missing without any.",
    ] = UNSET
    salt: Annotated[
        str | UnsetType, "What the first words depend on; missing without --cache salted."
    ] = UNSET
    prefix_cache: Annotated[
        SharedInput | UnsetType,
        "What a prefix cache can give back; missing in results of earlier versions.",
    ] = UNSET
    server_tokens: Annotated[
        Prediction | UnsetType, "Tokens that the server was expected to add to each prompt."
    ] = UNSET
    name: Annotated[str | UnsetType, "Name of the data set."] = UNSET
    rows_left_out: Annotated[
        int | UnsetType, "Rows of a trace with no input tokens or no output tokens."
    ] = UNSET


class Schedule(Struct, frozen=True, kw_only=True):
    """When requests were due."""

    sha256: Annotated[str, "SHA-256 of all due times."]
    requests: Annotated[int, "Number of requests."]
    sessions: Annotated[int, "Number of sessions; a single request counts as one."]
    duration_s: Annotated[float, "The window in which they are due, s."]


class Provenance(Struct, frozen=True, kw_only=True, dict=True):
    """What is needed to repeat the run."""

    # Settings, engine and prompts are kept as they were saved, since their keys depend on the run.
    # The properties without `saved` are typed.

    saved_settings: Annotated[
        dict[SettingName, Any],
        "All settings of the run with their final values, without secrets. `loadgen help "
        "run` explains each.",
    ] = msgspec.field(name="settings")
    asked: Annotated[
        dict[SettingName, Any], "The settings that were given and differ from the default."
    ] = {}
    seeds: Seeds
    versions: Versions
    machine: Machine
    saved_engine: Annotated[
        dict[str, Any],
        "Facts about the server.",
        Meta(extra_json_schema={"$ref": "#/$defs/Engine"}),
    ] = msgspec.field(name="engine")
    saved_prompts: Annotated[
        dict[str, Any],
        "Where the prompts come from.",
        Meta(extra_json_schema={"$ref": "#/$defs/Prompts"}),
    ] = msgspec.field(name="prompts")
    schedule: Schedule
    trace_key: Annotated[
        str | UnsetType, "What the ids of the traces are made of; missing without --trace."
    ] = UNSET

    @cached_property
    def settings(self) -> RunSettings:
        """The settings as resolved, without secrets."""
        # Other versions may have others.
        names = {field.name for field in dataclasses.fields(RunSettings)}
        return restored(
            {name: value for name, value in self.saved_settings.items() if name in names}
        )

    @property
    def target_urls(self) -> str:
        """The URLs of the servers; empty if none is known."""
        urls = self.settings.base_url or ""
        return " and ".join(urls) if isinstance(urls, tuple) else urls

    @property
    def way(self) -> str:
        """How the servers were reached; empty if directly."""
        engine = self.saved_engine
        ways = (server.get("way") for server in engine.get("targets", [engine]))
        return " and ".join(dict.fromkeys(filter(None, ways)))

    @cached_property
    def engine(self) -> Engine:
        """Facts about the server."""
        return from_json_values(self.saved_engine, Engine)

    @cached_property
    def prompts(self) -> Prompts:
        """Where the prompts come from."""
        return from_json_values(self.saved_prompts, Prompts)
