"""Chat templates of the kinds in use, written for the tests, by name."""

import json
from pathlib import Path

# Marks around each message, and an empty thought where thinking is turned off.
MARKS = """\
{%- for message in messages %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
# Brackets within the line, a beginning-of-sequence token of its own, and texts that are trimmed.
BRACKETS = """\
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' ~ (message.content | trim) ~ ' [/INST]' }}
    {%- else %}
        {{- ' ' ~ message.content ~ '</s>' }}
    {%- endif %}
{%- endfor %}
"""
# Instructions in front of whatever is said, tools among them.
INSTRUCTED = """\
{{- 'Today is a day like any other. Answer in full.\\n' }}
{%- if tools %}
    {{- 'Tools: ' ~ (tools | tojson) ~ '\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- message.role ~ ': ' ~ message.content ~ '\\n' }}
{%- endfor %}
{{- 'assistant:' }}
"""
ALL = {"marks": MARKS, "brackets": BRACKETS, "instructed": INSTRUCTED}


def beside(tokenizer: Path, template: str, folder: Path, **config: object) -> Path:
    """Put a tokenizer, a template and a tokenizer_config.json into a folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    (folder / "chat_template.jinja").write_text(template)
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"} | config))
    return folder
