"""Records in the layouts of published data sets, with sentences of our own."""

PLACES = ["harbour", "orchard", "station", "library", "market", "meadow", "tower"]


def _turns(*texts):
    return [
        {"from": speaker, "value": text}
        for speaker, text in zip(("human", "gpt", "human"), texts, strict=False)
    ]


def _rows(make):
    return [make(number, place) for number, place in enumerate(PLACES)]


LONG = " and then we walked on" * 500  # 2000 words and more
ROWS = {
    "philschmid/mt-bench": _rows(
        lambda number, place: {
            "question_id": number,
            "turns": [f"Describe the {place}.", "Now in verse."],
        }
    ),
    "likaixin/InstructCoder": _rows(
        lambda number, place: {
            "instruction": f"Rename the variable to {place}.",
            "input": f"x = {number}\nprint(x)",
            "output": f"{place} = {number}\nprint({place})",
        }
    ),
    "openai/openai_humaneval": _rows(
        lambda number, place: {
            "task_id": f"T/{number}",
            "prompt": f"def {place}(a):\n    # add {number}\n",
        }
    ),
    "openai/gsm8k": _rows(
        lambda number, place: {
            "question": f"How many boats lie at the {place}?",
            "answer": f"#### {number}",
        }
    ),
    "Aeala/ShareGPT_Vicuna_unfiltered": [
        *_rows(
            lambda number, place: {
                "id": str(number),
                "conversations": _turns(
                    f"Where do I find the {place}?", f"Go left, then {number} steps.", "Thanks."
                ),
            }
        ),
        {"id": "one turn", "conversations": _turns("Is anybody here today?")},
        {"id": "short", "conversations": _turns("Hm", "What do you want to know?")},
        {"id": "long", "conversations": _turns(LONG, "What do you want to know?")},
    ],
    "AI-MO/aimo-validation-aime": [
        *_rows(
            lambda number, place: {
                "problem": f"A {place} has {number} doors. How many ways lead in and out?",
                "solution": f"There are {number} times {number} ways.",
                "answer": str(number * number),
            }
        ),
        {"problem": "Two plus two?", "solution": "4", "answer": "4"},
    ],
    "zed-industries/zeta": _rows(
        lambda number, place: {
            "events": f'User edited "{place}.rs"',
            "input": f"fn {place}() {{<|user_cursor_is_here|>}}",
            "output": f"// head\n<|editable_region_start|>\nfn {place}() {{ {number} }}",
        }
    ),
    "vdaita/edit_5k_char": _rows(
        lambda number, place: {
            "code": f"{place} = {number}",
            "change_request": "Double it {now}.",
            "norm_distance": number / 10,
        }
    ),
    "mgoin/mlperf-inference-llama2-data": [
        *_rows(
            lambda number, place: {
                "system_prompt": "You are a guide.",
                "question": f"When was the {place} built?",
                "output": f"In the year 19{number}0, I believe.",
            }
        ),
        {"system_prompt": "You are a guide.", "question": "And the last one?", "output": LONG},
    ],
}
SPEC_BENCH = _rows(
    lambda number, place: {
        "category": ["writing", "maths"][number % 2],
        "turns": [f"Tell me of the {place}.", "More."],
    }
)
SPEED_BENCH = _rows(
    lambda number, place: {
        "category": ["coding", "maths"][number % 2],
        "messages": [{"role": "user", "content": f"Plan a visit to the {place}."}],
    }
)
