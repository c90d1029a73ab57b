"""Settings of the data set: which prompts are sent."""

import json
from typing import Literal

from loadgen.config.option import COMPAT, DATA, EVERYDAY, FIRST, option, settings_class
from loadgen.errors import BadInput
from loadgen.util.number_format import parse_share

Rule = Literal["vllm-0.11", "vllm-0.9", "guidellm-0.5", "benchmark-runner", "sglang"]
# Rules of tools that ask the server to ignore EOS.
FULL_LENGTH: tuple[Rule, ...] = ("guidellm-0.5", "benchmark-runner")
TRACE = "trace"  # the data set with a due time for each request
AGENTIC = "agentic"  # a data set of recorded sessions of agents
NO_TOKENIZER = (
    "none"  # value of --tokenizer: prompts are sent as they are, and only the server counts tokens
)
BUILT_IN_TOKENIZER = "built-in"  # value of --tokenizer: loadgen's own, so lengths are approximate
TIKTOKEN = "tiktoken:"  # before the name of an encoding, in a value of --tokenizer
RERANK = "random-rerank"  # a data set of a query with documents
BATCHED = ("random", RERANK)  # data sets of which a request may have several texts
RANDOM_IMAGES = "random-mm"  # a data set of texts with images
CUSTOM_IMAGE = "custom_image"  # rows with images
FULL_ANSWERS = ("random", RANDOM_IMAGES)  # data sets whose answers have their full length
HUB = ("hf", "spec_bench", "speed_bench")  # data sets of the hub
MULTI_TURN = "multi_turn"  # a data set of sessions for any --turns
PREFIX_REPETITION = (
    "prefix_repetition"  # a data set whose prompts, or sessions, begin with one of a few prefixes
)
RANGE_RATIO = "--random-range-ratio"
RANGE_RATIO_REMEDY = 'give a number from 0 to below 1, or {"input": r, "output": r}'


@settings_class
class DataSettings:
    """Fields of the data set, with the names and meanings of `vllm bench serve`.

    Lengths are tokens.
    """

    workload: str | None = option(
        None,
        DATA,
        "name of a preset, or YAML profile; other flags override it",
        metavar="NAME|FILE",
        instead="write RunSettings.of_workload(NAME), and replace() what differs",
        tier=EVERYDAY,
    )
    dataset_name: str = option(
        "random",
        DATA,
        "name of the data set; random, random-mm, random-rerank, prefix_repetition, multi_turn, "
        "sharegpt, trace, agentic, prose, sonnet, jsonl, csv, text, custom, custom_image, hf, "
        "spec_bench, speed_bench, or one of an installed package",
        metavar="NAME",
        tier=FIRST,
    )
    dataset_path: str | None = option(
        None,
        DATA,
        "file of the data set; for hf, its name on the Hugging Face hub",
        metavar="FILE|NAME",
        tier=FIRST,
    )
    dataset_rule: Rule | None = option(
        None,
        DATA,
        "make prompts by the rule of another tool, to compare with its published results (the "
        "data set's own rule)",
    )
    dataset_arg: tuple[str, ...] = option(
        (),
        DATA,
        "options of a data set that an installed package adds",
        metavar="NAME=VALUE",
    )
    random_input_len: int | str = option(
        1024,
        DATA,
        "tokens in a random prompt; a number, 900:1100, normal:MEAN:STDEV[:MIN:MAX], "
        "lognormal:..., clipped:MEAN:STDEV:MIN:MAX, a list such as 10,20, or @FILE with a list",
        metavar="TOKENS",
        tier=FIRST,
    )
    random_output_len: int | str = option(
        128,
        DATA,
        "maximum tokens of each answer; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=FIRST,
    )
    random_range_ratio: str = option(
        "0.0",
        DATA,
        'draw lengths given as one number from [len*(1-r), len*(1+r)]; R or {"input": r, '
        '"output": r}; unlike the flag '
        "of SGLang, which means [len*r, len]",
        metavar="R",
        tier=COMPAT,
    )
    random_prefix_len: int = option(
        0,
        DATA,
        "tokens in a prefix that all prompts of random, multi_turn and prefix_repetition share; "
        "prefixes of groups follow it",
        metavar="TOKENS",
        tier=EVERYDAY,
    )
    random_batch_size: int = option(
        1,
        DATA,
        "random texts in each request of embeddings, pooling or rerank; --num-prompts then counts "
        "the texts",
        metavar="N",
    )
    no_reranker: bool = option(
        False,
        DATA,
        "with random-rerank: for a model that embeds query and documents separately; each then "
        "has the whole length",
        tier=COMPAT,
    )
    input_len_counts: Literal["raw", "server"] = option(
        "raw",
        DATA,
        "what a length of random, prefix_repetition and prose counts: the tokens of the text alone "
        "(raw), or all tokens that the server counts, with its chat template (server)",
    )
    images: int | str = option(
        1,
        DATA,
        "number of images in a prompt of random-mm, or MIN:MAX",
        metavar="N|MIN:MAX",
        tier=EVERYDAY,
    )
    image_sizes: str = option(
        "256x256,720x1280",
        DATA,
        "sizes of images in pixels: HEIGHTxWIDTH, a range such as 256x256-1024x1024, or several, "
        "each with :SHARE if they are not equally frequent",
        metavar="SIZES",
    )
    image_format: str = option(
        "jpeg",
        DATA,
        "format of images: png, jpeg or jpeg:QUALITY; jpeg needs the package pillow",
        metavar="FORMAT",
    )
    image_content: Literal["random", "blank"] = option(
        "random", DATA, "pixels of images: random colors, or white"
    )
    image_position: Literal["first", "last"] = option(
        "last", DATA, "position of the images in a message: before the text, or after it"
    )
    sharegpt_output_len: int | None = option(
        None,
        DATA,
        "maximum tokens of each answer (the length of the recorded answer)",
        metavar="TOKENS",
        tier=COMPAT,
    )
    sharegpt_input_len: str | None = option(
        None,
        DATA,
        "tokens of the questions that --dataset-rule benchmark-runner sends",
        metavar="MIN:MAX",
    )
    turns: str | None = option(
        None,
        DATA,
        "turns of a session: a number, MIN:MAX or normal:MEAN:STDEV[:MIN:MAX] with multi_turn and "
        "prefix_repetition, or all of a conversation of sharegpt, jsonl and csv (multi_turn 3, "
        "others 1)",
        metavar="N|MIN:MAX|all",
        tier=EVERYDAY,
    )
    prefix_buckets: str | None = option(
        None,
        DATA,
        "prefixes of multi_turn (its system messages) and prefix_repetition: how many, of how many "
        "tokens, and how often each kind is drawn",
        metavar="COUNTxTOKENS:WEIGHT,...",
        listed=True,
    )
    prefix_zipf: float | None = option(
        None,
        DATA,
        "draw the prefixes of multi_turn and prefix_repetition by Zipf's law: prefix k has a share "
        "proportional to 1/k^ALPHA",
        metavar="ALPHA",
    )
    think_time: str = option(
        "0",
        DATA,
        "seconds from the end of an answer to the next turn, or with --users to a user's next "
        "request: a number, MIN:MAX, exp:MEAN, normal:MEAN:STDEV or lognormal:MEAN:STDEV",
        metavar="SECONDS",
        tier=EVERYDAY,
    )
    history: Literal["real", "recorded"] = option(
        "real",
        DATA,
        "answers in the history of later turns: the server's (real), or the data set's (recorded)",
    )
    trace_format: Literal[
        "auto", "mooncake", "burstgpt", "azure", "weka", "mlperf", "tracelab", "otel"
    ] = option(
        "auto",
        DATA,
        "format of the file: mooncake, burstgpt or azure for a trace; weka, mlperf, tracelab or "
        "otel for agents",
    )
    trace_column: tuple[str, ...] = option(
        (),
        DATA,
        "columns of a trace, if they have other names: time, input, output, blocks",
        metavar="FIELD=COLUMN",
    )
    trace_time_unit: float | None = option(
        None,
        DATA,
        "unit of the times in the trace, such as 1ms (depends on its format)",
        metavar="TIME",
    )
    trace_block_size: int = option(
        512, DATA, "tokens in a block that prompts of the trace share", metavar="TOKENS"
    )
    trace_times: Literal["keep", "ignore"] = option(
        "keep", DATA, "send a trace at its own times, or ignore them and use --request-rate"
    )
    time_scale: float = option(
        1.0,
        DATA,
        "factor that speeds up a trace, and shortens the pauses of agents",
        metavar="FACTOR",
    )
    max_think_time: float | None = option(
        None,
        DATA,
        "longest pause before a call of an agent; longer ones are cut (as recorded)",
        metavar="TIME",
    )
    trajectory_start: str = option(
        "0",
        DATA,
        "skip this share of the calls at the beginning of each recorded session, as if it had "
        "begun before the run; MIN:MAX: a random share",
        metavar="SHARE|MIN:MAX",
    )
    prefix_repetition_prefix_len: int = option(
        256, DATA, "tokens in each repeated prefix", metavar="TOKENS", tier=COMPAT
    )
    prefix_repetition_suffix_len: int | str = option(
        256,
        DATA,
        "tokens after a repeated prefix; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=COMPAT,
    )
    prefix_repetition_num_prefixes: int = option(
        10, DATA, "number of repeated prefixes", metavar="N", tier=COMPAT
    )
    prefix_repetition_output_len: int | str = option(
        128,
        DATA,
        "maximum tokens of each answer; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=COMPAT,
    )
    sonnet_input_len: int = option(
        550, DATA, "tokens in a prompt of prose", metavar="TOKENS", tier=COMPAT
    )
    sonnet_output_len: int = option(
        150, DATA, "maximum tokens of each answer", metavar="TOKENS", tier=COMPAT
    )
    sonnet_prefix_len: int = option(
        200,
        DATA,
        "tokens in a prefix that all prompts of prose share",
        metavar="TOKENS",
        tier=COMPAT,
    )
    custom_output_len: int = option(
        256,
        DATA,
        "maximum tokens of each answer, for rows of jsonl, csv, text, custom, custom_image and "
        "agents' calls that have no length of their own (256; -1: all must have one)",
        metavar="TOKENS",
        tier=COMPAT,
    )
    custom_ensure_client_side_data: bool = option(
        False,
        DATA,
        "send the image files of custom_image in the requests; otherwise the server reads them "
        "from their paths",
        tier=COMPAT,
    )
    no_oversample: bool = option(
        False,
        DATA,
        "send no prompt of a file twice; if it has fewer prompts than --num-prompts, send fewer "
        "requests",
        tier=COMPAT,
    )
    distinct_prompts: int | None = option(
        None,
        DATA,
        "number of distinct prompts, which are sent again and again in their order, so that a "
        "prefix cache hits (as many as requests)",
        metavar="N",
    )
    disable_shuffle: bool = option(
        False,
        DATA,
        "send the rows of custom, custom_image, hf, spec_bench and speed_bench in the file's "
        "order, and those of prefix_repetition prefix by prefix",
    )
    hf_name: str | None = option(
        None,
        DATA,
        "name on the hub of a local copy (the last two folders of --dataset-path)",
        metavar="NAME",
    )
    hf_subset: str | None = option(
        None,
        DATA,
        "subset of a data set on the hub, or of speed_bench (the data set's own default)",
        metavar="NAME",
    )
    hf_split: str | None = option(
        None,
        DATA,
        "split of a data set on the hub (train; test for data sets that are tests)",
        metavar="NAME",
    )
    hf_where: tuple[str, ...] = option(
        (),
        DATA,
        "use only the records that meet all conditions: COLUMN=TEXT, COLUMN<=NUMBER or "
        "COLUMN>=NUMBER",
        metavar="CONDITION",
    )
    hf_output_len: int | None = option(
        None,
        DATA,
        "maximum tokens of each answer (the length of the recorded answer, or the data set's "
        "default)",
        metavar="TOKENS",
        tier=COMPAT,
    )
    hf_column: tuple[str, ...] = option(
        (),
        DATA,
        "columns of a data set on the hub (found by their names): prompt, messages, answer, ...",
        metavar="FIELD=COLUMN",
    )
    render_chat_template: Literal["whole", "without-bos"] | None = option(
        None,
        DATA,
        "put the model's chat template around each prompt before it is sent, for completions; "
        "without-bos leaves out its beginning-of-sequence token, which the server adds",
    )
    prompt_token_ids: bool = option(
        False,
        DATA,
        "send prompts as token ids instead of text, with completions and SGLang's /generate",
    )

    @property
    def dataset_options(self) -> dict[str, str]:
        """The values of --dataset-arg by name. The data set converts them."""
        pairs = (pair.partition("=") for pair in self.dataset_arg)
        return {name.replace("-", "_"): value for name, _, value in pairs}

    def requests_of(self, texts: int) -> int:
        """Return how many requests so many texts of --num-prompts are."""
        if self.dataset_name not in BATCHED:
            return texts
        queries = int(self.no_reranker)  # it is one of the texts
        return -(-(texts - queries) // (self.random_batch_size - queries))

    @property
    def timed_by_data(self) -> bool:
        """Whether the number of requests at a time depends on the data set: sessions, or a
        trace.
        """
        return (
            self.keeps_trace_times
            or self.dataset_name in (AGENTIC, MULTI_TURN)
            or self.turns not in (None, "1")
        )

    @property
    def keeps_trace_times(self) -> bool:
        """Whether requests are due at the times of a trace."""
        return self.dataset_name == TRACE and self.trace_times == "keep"


def parse_ratios(text: str) -> tuple[float, float]:
    """Parse `--random-range-ratio`, and return the ratios of prompts and answers.

    Raises:
        BadInput: It is neither a number nor an object with exactly `input` and `output`, or a ratio
            is not in [0, 1).
    """
    try:
        values = (
            json.loads(text) if text.lstrip().startswith("{") else {"input": text, "output": text}
        )
        ratios = {key: parse_share(str(ratio)) for key, ratio in values.items()}
    except (ValueError, TypeError) as error:
        raise BadInput(RANGE_RATIO, f"invalid ratio {text!r}", RANGE_RATIO_REMEDY) from error
    if ratios.keys() != {"input", "output"} or not all(0 <= ratio < 1 for ratio in ratios.values()):
        raise BadInput(RANGE_RATIO, f"{text} is not in range", RANGE_RATIO_REMEDY)
    return ratios["input"], ratios["output"]
