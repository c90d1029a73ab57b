"""MindIE: a daemon that reads its settings from config.json; each server gets its own copy of
that file.
"""

import ipaddress
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.engines.kinds import mindie_config
from loadgen.engines.kinds.engine import Engine, Launch, Place, Probes, is_path
from loadgen.engines.kinds.knob_forms import ConfigEntry, Flag, FlagGroup, Switch, plain_flags
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import check_word, parse_speculation
from loadgen.errors import BadInput

# Variables of every server, as the GPUStack project's back end sets them; those that flags change
# stand in `mindie_config.variables`.
ENV = {
    "ATB_CONVERT_NCHW_TO_ND": "1",
    "ATB_LAYER_INTERNAL_TENSOR_REUSE": "1",
    "ATB_LLM_ENABLE_AUTO_TRANSPOSE": "1",
    "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE": "3",
    "ATB_WORKSPACE_MEM_ALLOC_GLOBAL": "1",
    "CPU_AFFINITY_CONF": "1",
    "INF_NAN_MODE_ENABLE": "0",
    "MIES_RECOMPUTE_THRESHOLD": "0.5",
    "MINDIE_CHECK_INPUTFILES_PERMISSION": "0",
    "MINDIE_LLM_CONTINUOUS_BATCHING": "1",
    "MINDIE_LLM_FRAMEWORK_BACKEND": "ATB",
    "MINDIE_LLM_RECOMPUTE_THRESHOLD": "0.5",
    "OMP_NUM_THREADS": "1",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
    "SAFETENSORS_FAST_GPU": "1",
    # Errors stand in the server's log, and not in files of their own.
    "ASCEND_SLOG_PRINT_TO_STDOUT": "1",
    "ATB_LOG_TO_STDOUT": "1",
    "MINDIE_LLM_LOG_TO_STDOUT": "1",
    "MINDIE_LLM_PYTHON_LOG_TO_STDOUT": "1",
    "MINDIE_LOG_TO_STDOUT": "1",
}


def _experts(on: bool, knobs: Mapping[str, Any]) -> int | None:
    """Return the number of expert groups: the number of devices."""
    sizes = [knobs.get(f"{kind}_parallel", 1) for kind in ("tensor", "pipeline", "data")]
    return sizes[0] * sizes[1] * sizes[2] if on else None


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> list[str]:
    draft = parse_speculation(value, {"mtp": "mtp"})
    return ["--enable-multi-token-prediction", "--multi-token-prediction-tokens", str(draft.tokens)]


TABLE = KnobTable(
    "mindie",
    {
        "served_name": (ConfigEntry(("ModelConfig", "modelName"), {"--served-model-name": ()}),),
        **plain_flags(
            {
                "tensor_parallel": "--tensor-parallel-size -tp",
                "pipeline_parallel": "--pipeline-parallel-size -pp",
                "data_parallel": "--data-parallel-size -dp",
                "max_batched_tokens": "--max-prefill-tokens",
            }
        ),
        "expert_parallel": (
            Flag(
                "--moe-expert-parallel-size",
                ("-moe-ep",),
                convert=_experts,
                note="the product of the parallel sizes",
            ),
        ),
        "context_len": (Flag("--max-seq-len", note="8192 unless given"),),
        "max_seqs": (Flag("--max-batch-size", note="200 unless given"),),
        "chunked_prefill": (Switch(("--enable-split",), ("--no-enable-split",)),),
        "prefix_cache": (Switch(("--enable-prefix-caching",), ("--no-enable-prefix-caching",)),),
        "speculative": (
            FlagGroup(
                {"--enable-multi-token-prediction": (), "--multi-token-prediction-tokens": ()},
                convert=_speculative,
            ),
        ),
        "memory_fraction": (Flag("--npu-memory-fraction", note="0.8 unless given"),),
    },
    nearest={
        "quantization": "a checkpoint that is quantized: name it as the model",
        "kv_dtype": "a checkpoint with a quantized cache: name it as the model",
    },
)


@dataclass(frozen=True, kw_only=True)
class MindIE:
    """The MindIE daemon, with the flags that published benchmarks use for it.

    Attributes:
        name: The engine's name in commands and results.
        install: Folder of the MindIE service; source its set_env.sh before you start loadgen.
        probes: URL paths of a running server.
        release: The version; None: the installed one.
    """

    name: str = "mindie"
    install: Path = Path("/usr/local/Ascend/mindie/latest/mindie-service")
    probes: Probes = Probes(health="/v2/health/ready", metrics="/metrics", resolved="/info")
    release: str | None = None

    def version(self) -> str | None:
        """Return the version in the installation's version.info."""
        try:
            text = (self.install / "version.info").read_text()
        except OSError:
            return self.release
        match = re.search(r"(?i)version\s*[:=]\s*(\S+)", text)
        return self.release or (match[1] if match else None)

    def knobs(self) -> Mapping[str, str]:
        """Return the supported knobs with MindIE's own names, as `Engine.knobs`."""
        return TABLE.own_names(self.version())

    def launch(
        self, model: str, knobs: Mapping[str, object], raw: Sequence[str], place: Place
    ) -> Launch:
        """Return how to serve `model`, which must be a local folder, as MindIE downloads nothing.

        Raises:
            BadInput: As `Engine.launch`, or the model is a hub name, or the host is a loopback
                address, where MindIE does not report its health.
        """
        if _is_loopback(place.host):
            raise BadInput(
                "host",
                f"MindIE does not answer at {place.host}",
                "give an address of this machine's network",
            )
        if not is_path(check_word("model", model)):
            remedy = (
                f"download it, and name its folder, such as ./{Path(model).name} or "
                f"/models/{Path(model).name}"
            )
            raise BadInput(
                "model", f"MindIE downloads nothing, and {model} is not a folder", remedy
            )
        version = self.version()
        checked = TABLE.check(knobs)
        served_name = str(checked.pop("served_name", None) or Path(model).name)
        TABLE.check_raw_flags(raw, {*checked, "served_name"}, version)
        words = (*TABLE.render(checked, version).words, *raw)
        flags = mindie_config.parse(words)
        config = mindie_config.configure(
            self._installed(), flags, os.path.abspath(model), served_name, place
        )
        target = place.folder / "config.json"
        shorthand = ("mindie", "serve", model, *words)
        env = ENV | mindie_config.variables(flags)
        env |= {"MIES_INSTALL_PATH": str(self.install), "MIES_CONFIG_JSON_PATH": str(target)}
        if place.devices:
            env["ASCEND_RT_VISIBLE_DEVICES"] = ",".join(place.devices)
        return Launch(
            argv=(str(self.install / "bin/mindieservice_daemon"),),
            base_url=place.base_url,
            model=served_name,
            env=env,
            files={target: json.dumps(config, indent=4, ensure_ascii=False) + "\n"},
            folder=self.install / "bin",
            tokenizer=model,
            shorthand=shorthand,
            normal=mindie_config.FLAG_SYNTAX.normalize(shorthand),
            context_len=flags["--max-seq-len"],
        )

    def _installed(self) -> dict[str, Any]:
        """Return the installed configuration; empty without an installation, so that a plan
        needs none.
        """
        path = self.install / "conf/config.json"
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BadInput(
                str(path), f"it cannot be read ({type(error).__name__})", "install MindIE again"
            ) from error
        return dict(content)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


engine: Engine = MindIE()
