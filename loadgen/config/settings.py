"""`RunSettings`: the settings of one run, frozen. Every field is a command-line flag."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, Concatenate, ParamSpec, TypeVar

from loadgen.config import load_check, server_url, validate
from loadgen.config.data import FULL_ANSWERS, FULL_LENGTH, DataSettings
from loadgen.config.load import SeedPurpose
from loadgen.config.load_profile import CONCURRENCY, LoadProfile
from loadgen.config.option import SECONDS, check_options, check_type, options, settings_class
from loadgen.config.request_class import (
    CLASS,
    RequestClass,
    class_texts,
    classes_of,
    rate_place,
    redacted_class,
    total_rate,
)
from loadgen.config.run_fields import RunFields
from loadgen.config.target import IGNORE_EOS
from loadgen.errors import BadInput, setting, within, written_as
from loadgen.util.redaction import MARK, header_name, redact_flags, redact_user

Fields = ParamSpec("Fields")
Returned = TypeVar("Returned")
OfFields = Callable[Concatenate["RunSettings", Fields], Returned]
# Fields that give a load, besides a rate; and the load of a server of which none is given.
GIVES_LOAD = ("num_prompts", "max_concurrency", "duration", "users", "workload")
GENTLE_REQUESTS, GENTLE_CONCURRENCY = 100, 8
NO_LOAD = (
    f"no load was given: {GENTLE_REQUESTS} requests, {GENTLE_CONCURRENCY} at once; for another, "
    "give --rate, --max-concurrency, --num-prompts or --duration"
)
# Flags of the command that are no fields, and what a program does instead.
COMMAND_ALONE = {
    "compat": "set the fields that it stands for; docs/migrating.md has them",
    "config": "read the file, and give its keys as fields",
    "dry_run": "leave it out, and see the prompts of a run with `loadgen dataset`",
    "num_runs": "call run for each run, with a seed of its own, and give compare the results",
    "plot": "call search, or run for each level, and draw the results",
}


def _with_fields_of(
    settings: Callable[Fields, object],
) -> Callable[[Callable[..., Returned]], OfFields[Fields, Returned]]:
    """Type a method, for type checkers, as one that takes the fields of a settings class."""
    return lambda method: method


def _check_names(arguments: dict[str, Any]) -> None:
    """Check that arguments are fields.

    Raises:
        BadInput: An argument is no field.
    """
    names = options(RunSettings)
    for name in arguments.keys() - names.keys():
        if name in COMMAND_ALONE:
            raise BadInput(setting(name), "is for the command alone", COMMAND_ALONE[name])
        import difflib  # not before: it is slow to import

        near = [field for field in names if name in field] or difflib.get_close_matches(
            name, names, 1
        )
        remedy = (
            f"did you mean {near[0]}?" if near else "write a flag of `loadgen run`, with _ for -"
        )
        raise BadInput(setting(name), "is not a field of RunSettings", remedy)


@settings_class
class RunSettings(RunFields):
    """What one run asks, of which server, how fast, and what is kept; names and meanings are `vllm
    bench serve`'s.

    Times are seconds, or texts such as "500ms", "30s", "2m", "1h"; rates are requests per second,
    lengths tokens. Ranges and combinations are checked by the call that takes the settings, before
    anything is sent.

    Raises:
        BadInput: There is no such field, or a value has the wrong type, or is a text that is no
            time.
    """

    @_with_fields_of(RunFields)
    def __init__(self, **fields: Any) -> None:
        self._set({option.name: option.default for option in options(RunSettings).values()}, fields)

    def _set(self, values: dict[str, Any], changes: dict[str, Any]) -> None:
        """Take values, changed ones converted and with their types checked, and what they imply."""
        _check_names(changes)
        for name, value in changes.items():
            option = options(RunSettings)[name]
            if isinstance(value, str) and option.unit is SECONDS:
                value = option.read(value)
            elif name == "base_url" and isinstance(value, list):
                value = tuple(value)
            elif name == "classes" and isinstance(value, dict):  # as a file or a program gives them
                value = class_texts(value)
            option.check_type(value)
            values[name] = value
        vars(self).update(values)
        if self.urls:
            urls, endpoint = server_url.read(self.urls, self.endpoint)
            object.__setattr__(self, "base_url", urls[0] if len(urls) == 1 else urls)
            object.__setattr__(self, "endpoint", endpoint)
        if (
            self.classes
            and math.isinf(self.request_rate)
            and (rate := total_rate(self.classes)) is not None
        ):
            object.__setattr__(self, "request_rate", rate)
        if self.max_concurrency is None:
            cap = self.users
            if cap is None and self.concurrency_profile is not None:
                cap = int(LoadProfile.parse(self.concurrency_profile, CONCURRENCY).highest)
            object.__setattr__(self, "max_concurrency", cap)

    @classmethod
    def of_workload(cls, name: str) -> "RunSettings":
        """Return the settings of a named workload, such as "short", or of a profile in a YAML file.

        `replace` changes what is to differ from it, and adds the server.

        Raises:
            BadInput: There is neither a workload nor a file of that name, or the file is invalid.
        """
        from loadgen.config import presets

        check_type("name", name, str, "give the name of a workload, or of a file")
        return cls(**presets.resolve(name))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunSettings) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        shown = (
            f"{name}={value!r}"
            for name, value in public(self).items()
            if getattr(self, name) != options(RunSettings)[name].default
        )
        return f"RunSettings({', '.join(shown)})"

    @_with_fields_of(RunFields)
    def replace(self, **changes: Any) -> "RunSettings":
        """Return a copy with some fields changed.

        Raises:
            BadInput: There is no such field, or a value has the wrong type.
        """
        if all(getattr(self, name, self) is value for name, value in changes.items()):
            return self
        changed = object.__new__(RunSettings)
        changed._set(dict(vars(self)), changes)
        return changed

    def apart(self) -> "tuple[RunSettings, ...]":
        """Return settings for each target of the run alone."""
        if len(self.urls) < 2:
            return (self,)
        return tuple(self.replace(base_url=url, balance=None) for url in self.urls)

    @property
    def request_classes(self) -> tuple[RequestClass, ...]:
        """The classes of requests: those of `classes`, or one for each LoRA adapter; empty without
        either.

        Raises:
            BadInput: One is invalid.
        """
        return classes_of(self.classes, self.lora_modules, self.lora_assignment)

    def of_class(self, request_class: RequestClass) -> "RunSettings":
        """Return the settings of the requests of a class alone."""
        changes = {"slo": None} | dict(request_class.changes)
        if request_class.priority is not None:
            changes["extra_body"] = (self.extra_body or {}) | {"priority": request_class.priority}
        header = (*self.header, *request_class.header)
        return self.implied(
            classes=(), lora_modules=(), lora_assignment=None, header=header, **changes
        )

    @_with_fields_of(RunFields)
    def implied(self, **changes: Any) -> "RunSettings":
        """Return a copy with some fields changed, and with what is then implied of `ignore_eos`,
        unless it is given, `percentile_metrics` and `duration`.

        Random prompts ask for answers of full length, as in `vllm bench serve`: only the length of
        such an answer is of interest. So do the rules of tools that ignore EOS. An answer without
        a maximum of tokens would not end. Where answers are
        no streams, E2EL is the only latency. A profile says how long the run sends; a file of one
        is replaced by its phases.
        """
        changed = self.replace(**changes)
        if changed is self:
            return self.replace(**self._implications)
        changed._set({}, changed._implications)  # nothing else has it yet
        return changed

    @property
    def _implications(self) -> dict[str, Any]:
        """What `implied` sets."""
        changes: dict[str, Any] = {}
        if not self.streams and self.percentile_metrics == RunFields.percentile_metrics:
            changes["percentile_metrics"] = "e2el"
        if (profile := self.load_profile) is not None and self.duration is None:
            name = "concurrency_profile" if self.rate_profile is None else "rate_profile"
            changes |= {"duration": profile.length_s, name: str(profile)}
        of_class = {"dataset_name", "dataset_rule"}  # which implies it of each class
        if (
            self.ignore_eos is None
            and self.generates
            and not any(of_class & each.data.keys() for each in self.request_classes)
        ):
            full = (
                self.dataset_rule in FULL_LENGTH
                if self.dataset_rule
                else self.dataset_name in FULL_ANSWERS
            )
            changes["ignore_eos"] = full and not self.no_max_tokens and IGNORE_EOS not in self.omit
        return changes

    def gentle(self) -> "RunSettings":
        """Return a copy with a load that harms no server, where no load is given and the server is
        the user's own.
        """
        is_given = (
            math.isfinite(self.request_rate)
            or self.rate_changes
            or self.timed_by_data
            or self.ray is not None
            or any(getattr(self, name) is not None for name in GIVES_LOAD)
        )
        if is_given or self.adapt is False or self.engine is not None:
            return self
        workers = self.workers if isinstance(self.workers, int) else 1
        return self.replace(
            num_prompts=GENTLE_REQUESTS, max_concurrency=max(GENTLE_CONCURRENCY, workers)
        )

    def unattended(self, **limits: float) -> "RunSettings":
        """Return a copy for a run that nobody watches: with these limits where the usual ones are.

        Args:
            limits: Timeouts by their fields, s. Where answers come in one piece, that of the first
                token is left out.
        """
        usual = options(RunSettings)
        changes: dict[str, Any] = {
            name: limit
            for name, limit in limits.items()
            if getattr(self, name) == usual[name].default
            and (self.streams or name != "first_token_timeout")
        }
        return self.replace(**changes)

    def checked(self) -> "RunSettings":
        """Check every value, and return these settings.

        Raises:
            BadInput: The first value that cannot be used; nothing has been sent or written.
        """
        with written_as(rate_place(self.classes, self.request_rate)):
            validate.check(self)
        classes = [
            (request_class, self.of_class(request_class)) for request_class in self.request_classes
        ]
        for request_class, settings in classes if self.classes else ():
            with within(CLASS, request_class.name):
                validate.check(settings)
        load_check.check_class_data(self, classes)
        return self

    def check_data(self) -> None:
        """Check the fields of the data set alone.

        Raises:
            BadInput: The first value that cannot be used.
        """
        check_options(self, {}, DataSettings)
        validate.check_data(self)


def public(settings: RunSettings) -> dict[str, Any]:
    """Return the settings as JSON without secrets: the API key, values of headers, and users in
    URLs are redacted.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        values[field.name] = list(value) if isinstance(value, tuple) else value
    values["classes"] = list(map(redacted_class, settings.classes))
    for name in ("api_key", "api_key_command"):
        values[name] = MARK if getattr(settings, name) else None
    values["header"] = [f"{header_name(header)}={MARK}" for header in settings.header]
    values["proxy"] = settings.proxy and redact_user(settings.proxy)
    values["engine_arg"] = [redact_flags(word) for word in settings.engine_arg]
    urls = shown_urls(settings)
    values["base_url"] = list(urls) if len(urls) > 1 else next(iter(urls), None)
    return values


def shown_urls(settings: RunSettings) -> tuple[str, ...]:
    """Return every --base-url, with users redacted."""
    return tuple(map(redact_user, settings.urls))


def is_closed_loop(settings: RunSettings) -> bool:
    """Return whether requests become due when a slot is free: all at once, with a cap on
    requests in flight.
    """
    burst = math.isinf(settings.request_rate) and not settings.rate_changes
    return burst and settings.max_concurrency is not None


def seed_of(settings: RunSettings, purpose: SeedPurpose) -> int:
    """Return the seed of one purpose: its own seed if given, else the seed of the run."""
    seed: int | None = getattr(settings, f"seed_{purpose}")
    return settings.seed if seed is None else seed


def is_bounded_by_time(settings: RunSettings) -> bool:
    """Return whether the number of requests is unknown beforehand: a closed loop that only a
    duration ends.
    """
    return (
        is_closed_loop(settings) and settings.duration is not None and settings.num_prompts is None
    )
