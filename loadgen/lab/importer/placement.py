"""Places a published result in a study: the arm that its command starts, and the workload that
it can come from.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from difflib import get_close_matches

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.audit.command import MODEL_FLAGS, ServingCommand, commands
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import stems
from loadgen.lab.audit.workload import length_mismatch
from loadgen.lab.importer.entries import Unplaced
from loadgen.lab.study.plan.estimate import tokens
from loadgen.lab.study.plan.plan import CONFIRMATION, NOISE, Plan, PlannedArm
from loadgen.lab.study.plan.study_engines import StudyEngines
from loadgen.lab.study.spec.arm_spec import ArmSpec
from loadgen.lab.study.spec.strict_model import suggestion

MIN_REQUESTS = 0.9  # share of a workload's requests that a result must account for
CONVERSATIONS = 1000  # of ShareGPT, for which the usual lengths are known
TOLERANCE = 0.15  # relative, of their mean length: tokenizers differ
RATE_KEPT = 0.9  # share of the request rate from which on no cap has held requests back
# share of the time that a request rate takes; Poisson arrivals of few requests may need less than
# all
EARLY = 0.5
ADDRESS_FLAGS = ("host", "port")  # without effect on speed


class Arms:
    """The arms that a study would try if the expected arms won each stage.

    Args:
        plan: Its plan.

    Attributes:
        loads: The workloads of the study as settings of runs, by name.
    """

    def __init__(self, plan: Plan) -> None:
        self._study = plan.study
        self._engines = StudyEngines(plan.study)
        self.loads = plan.loads
        self._arms: list[PlannedArm] = []
        for step in plan.steps:
            if step.name != NOISE:
                self._arms += step.arms
        self._by_command: dict[tuple[str, object], list[PlannedArm]] = defaultdict(list)
        self._page_names: dict[str, str] = {}  # engines of the study to their names on pages
        for arm in self._arms:
            launch = arm.launches[0]
            engine = arm.spec.engine
            self._by_command[engine, launch.normal or launch.argv].append(arm)
            for command in commands(" ".join(launch.shorthand or launch.argv), 0):
                self._page_names[engine] = command.engine

    @property
    def baseline(self) -> PlannedArm:
        """The baseline in the confirmation."""
        return next(arm for arm in self._arms if arm.step == CONFIRMATION)

    def named(self, text: str) -> tuple[PlannedArm, str | None]:
        """Return the arm, and the workload if given, of STEP/ARM[:WORKLOAD].

        Raises:
            BadInput: The arm or the workload is unknown.
        """
        arms = {arm.path: arm for arm in self._arms}
        path, _, workload = text.rpartition(":")
        if text in arms:
            return arms[text], None
        if path not in arms:
            remedy = suggestion(text, [*arms]) or f"name one of {', '.join([*arms][:12])}"
            raise BadInput("--as", f"unknown arm {text!r}", remedy)
        if workload not in self.loads:
            raise BadInput(
                "--as", f"unknown workload {workload!r}", f"name one of {', '.join(self.loads)}"
            )
        return arms[path], workload

    def names_model(self, command: ServingCommand) -> bool:
        """Return whether a command names a model of the study."""
        return _bare(command.model) in map(_bare, self._study.models.values())

    def started_by(
        self, command: ServingCommand, stage: str, *, similar_models: bool = True
    ) -> tuple[PlannedArm, str]:
        """Return the arm that a command starts, and a remark; empty if there is none.

        Args:
            command: The command as printed.
            stage: Title of the stage above it; empty: none.
            similar_models: Whether a model that the study does not have may be taken for one with a
                similar name.

        Raises:
            Unplaced: No arm has this command, or several have.
        """
        model, note = self._model(command, similar=similar_models)
        arms = self._with_command(command, model)
        if not arms:
            arms = self._with_command(command, model, shared=True)
            if arms:
                knobs = ", ".join(self._study.engines[arms[0].spec.engine].knobs)
                missing = f"its command does not say {knobs}, which every server of the study has"
                note = f"{note}; {missing}" if note else missing
        if not arms:
            raise Unplaced(f"no arm has the command `{command.text}`")
        arms.sort(key=lambda arm: _fit(arm, command, stage), reverse=True)
        most = _fit(arms[0], command, stage)
        best = [arm for arm in arms if _fit(arm, command, stage) == most]
        if len({arm.identity for arm in best}) > 1:
            raise Unplaced(
                f"`{command.text}` is the command of {' and '.join(arm.path for arm in best)}"
            )
        return best[0], note

    def _model(self, command: ServingCommand, *, similar: bool) -> tuple[str, str]:
        """Return the study's variant of a command's model, and a remark if the names are only
        similar.

        Raises:
            Unplaced: No variant has a similar name.
        """
        models: Mapping[str, str] = self._study.models
        if not command.model:
            return "", ""
        for of in (str, _bare):
            same = [variant for variant, model in models.items() if of(model) == of(command.model)]
            if same:
                return same[0], ""
        by_bare_name = {_bare(model): variant for variant, model in models.items()}
        near = get_close_matches(_bare(command.model), by_bare_name, 1) if similar else []
        if not near:
            raise Unplaced(
                f"unknown model {command.model}; the study has {', '.join(models.values())}"
            )
        variant = by_bare_name[near[0]]
        return (
            variant,
            f"its command names the unknown model {command.model}; taken for {models[variant]}",
        )

    def _with_command(
        self, command: ServingCommand, model: str, *, shared: bool = False
    ) -> list[PlannedArm]:
        """Return the arms of a command.

        Args:
            command: The command.
            model: The study's variant of its model; empty: any.
            shared: Whether to add the knobs of all servers of its engine, which pages may leave
                out.
        """
        arms: list[PlannedArm] = []
        for engine, page_name in self._page_names.items():
            if command.engine in ("", page_name):
                knobs = self._study.engines[engine].knobs if shared else {}
                env = self._study.engines[engine].env
                for variant in [model] if model else self._study.models:
                    arm = ArmSpec(engine, variant, knobs, server_flags(command), env)
                    arms += self._by_command.get((engine, self._engines.normal(arm)), [])
        return arms


def server_flags(command: ServingCommand) -> dict[str, tuple[str, ...]]:
    """Return all words of each flag of a command, by the flag, without its model and address."""
    flags: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in command.words:
        if word.startswith("-") and not word[1:2].isdigit():
            name = word.partition("=")[0]
            flags[name] = (word,)
        elif name:
            flags[name] += (word,)
    left_out = (*MODEL_FLAGS, *ADDRESS_FLAGS)
    return {name: words for name, words in flags.items() if name.lstrip("-") not in left_out}


def _fit(arm: PlannedArm, command: ServingCommand, stage: str) -> tuple[bool, bool, bool, bool]:
    """Return how well an arm's step and variables match a result; more is better."""
    last = arm.step == CONFIRMATION
    return (
        last is not bool(stage),
        bool(stems(arm.step) & stems(stage)),
        arm.spec.env == command.env,
        not arm.start,
    )


def _bare(model: str) -> str:
    return model.rpartition("/")[2].lower()


def find_workload(
    loads: Mapping[str, RunSettings], result: Published, sent: int | None, near: str
) -> str:
    """Return the name of a result's workload.

    Args:
        loads: Workloads of the study, by name.
        result: The result.
        sent: Number of requests that were sent; None: as many as succeeded.
        near: Text above it, which decides if several workloads fit.

    Raises:
        Unplaced: No workload of the study fits, or several do.
    """
    why = {name: _mismatch(result, sent, load) for name, load in loads.items()}
    fitting = [name for name, reason in why.items() if not reason]
    exact = [name for name in fitting if loads[name].dataset_name == "random"] or fitting
    named = [name for name in exact if stems(name) and stems(name) <= stems(near)]
    candidates = exact if len(exact) == 1 else named
    if len(candidates) == 1:
        return candidates[0]
    if exact:
        raise Unplaced(f"{_shape(result)} can be {' or '.join(candidates or exact)}")
    reasons = ", ".join(f"{name} {reason}" for name, reason in why.items())
    raise Unplaced(f"no workload of the study is {_shape(result)}: {reasons}")


def _mismatch(result: Published, sent: int | None, load: RunSettings) -> str:
    ok = _value(result, "ok")
    requests = load.num_prompts
    sent = int(ok) if sent is None else sent
    if requests and not MIN_REQUESTS * requests <= sent <= requests:
        return f"has {requests} requests"
    if not ok:
        return "has requests that succeed"
    rate = load.request_rate
    printed = result.get("rate")
    duration = result.get("duration_s")
    too_short = duration is not None and duration.value < EARLY * (ok - 1) / rate
    if too_short or (printed is not None and not math.isclose(printed.value, rate, rel_tol=0.01)):
        return "has no request rate" if math.isinf(rate) else f"has {rate:g} req/s"
    if other_cap := _cap_mismatch(result, sent, load):
        return other_cap
    if load.dataset_name == "sharegpt":
        same = load.sharegpt_output_len is None and result.reply is not None
        return "has replies of different lengths" if same else ""
    if load.dataset_name != "random":
        return ""
    lengths = {"prompts": load.random_input_len, "replies": load.random_output_len}
    prompts, replies = (length if isinstance(length, int) else None for length in lengths.values())
    wrong = length_mismatch(result, prompts, replies)
    return f"has {wrong} of {lengths[wrong]} tokens" if wrong else ""


def _cap_mismatch(result: Published, sent: int, load: RunSettings) -> str:
    """Compare the caps on requests in flight as far as they bind; some files do not have it."""
    if result.tpot_with_first or (result.data and "max_concurrency" not in result.data):
        return ""
    rate = load.request_rate
    duration = result.get("duration_s")
    if (
        math.isfinite(rate)
        and duration is not None
        and _value(result, "ok") >= RATE_KEPT * rate * duration.value
    ):
        return ""  # no cap held a request back; some tools print the highest number seen as the cap
    cap = result.get("cap")
    if _binding(cap.value if cap else None, sent) == _binding(load.max_concurrency, sent):
        return ""
    return (
        f"has at most {load.max_concurrency} in flight"
        if load.max_concurrency
        else "has no cap on those in flight"
    )


def _binding(cap: float | None, requests: int) -> float:
    return cap if cap is not None and cap < requests else math.inf


def _shape(result: Published) -> str:
    cap = result.get("cap")
    in_flight = f"at most {cap.value:g} in flight, " if cap else ""
    lengths = (
        f"{_value(result, 'input_tokens'):g} tokens in, {_value(result, 'output_tokens'):g} out"
    )
    return f"{_value(result, 'ok'):g} requests, {in_flight}{lengths}"


def _value(result: Published, name: str) -> float:
    number = result.get(name)
    return number.value if number else 0.0


def load_difference(result: Published, load: RunSettings) -> str:
    """Return in what the prompts of a result differ from a workload's; empty if nothing shows that
    they do.

    Results with failed requests are not compared, since the tokens of the others say little. Mean
    lengths of ShareGPT are compared if the workload has as many requests as the usual lengths are
    known for.

    Args:
        result: The result.
        load: The workload.
    """
    ok = result.get("ok")
    prompts = result.get("input_tokens")
    lengths = tokens(load)
    if ok is None or not ok.value or ok.value != load.num_prompts or lengths is None:
        return ""
    if prompts is None:
        return ""
    mean = prompts.value / ok.value
    usual = lengths[0]
    mean_text = f"its prompts have {mean:.2f} tokens on average"
    if load.dataset_name == "random":
        if (
            load.dataset_rule is None and mean % 1
        ):  # a template adds the same number of tokens to each prompt
            return f"{mean_text}, and each of this load has exactly {usual}"
        if load.dataset_rule == "vllm-0.9" and mean != usual:
            return f"{mean_text}, and vllm-0.9 counts {usual} for each"
        if load.dataset_rule == "vllm-0.11" and mean > usual:
            return f"{mean_text}, and those of vllm-0.11 at most {usual}"
        return ""
    if load.num_prompts != CONVERSATIONS or abs(mean / usual - 1) <= TOLERANCE:
        return ""
    rule = load.dataset_rule or "vllm-0.11"
    return (
        f"its prompts have {mean:.0f} tokens on average, and those that {rule} chooses about "
        f"{usual}"
    )
