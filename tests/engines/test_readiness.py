"""The configuration that a server reports, compared with the requested one."""

import pytest

from loadgen.engines.launch.readiness import differences, reported_version


@pytest.mark.parametrize(
    ("argv", "told", "expected"),
    [
        (["--max-model-len", "4096"], {"max_model_len": 4096}, []),
        (
            ["--max-model-len=4096"],
            {"max_model_len": 2048},
            ["max_model_len: 4096 was requested, the server has 2048"],
        ),
        (["--mem-fraction-static", "0.90"], {"args": [{"mem_fraction_static": 0.9}]}, []),
        (["--enable-metrics", "--tp-size", "2"], {"enable_metrics": True, "tp_size": "2"}, []),
        (
            ["--tp-size", "2"],
            {"tp_size": [1, 1]},
            ["tp_size: 2 was requested, the server has 1, 1"],
        ),
        (["--dtype", "Auto"], {"dtype": "auto"}, []),
        (["--trust-remote-code", "true"], {"trust_remote_code": True}, []),
        (["--port", "8000"], {"inner": {"port": 9000}, "port": 8000}, []),
        (["--seed", "x"], {"seed": 7}, ["seed: x was requested, the server has 7"]),
        (["--max-model-len", "4096"], {"other": 1}, []),
        (["--last"], {"last": 1}, []),
        (["--max-model-len", "4096"], None, []),
    ],
)
def test_flags_that_the_server_has_otherwise_are_told(
    argv: list[str], told: object, expected: list[str]
) -> None:
    assert [str(each) for each in differences(["engine", "model", *argv], told)] == expected


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ({"version": "0.11.0"}, "0.11.0"),
        ({"build_info": "b6000-abc"}, "b6000-abc"),
        ({"build_info": "b0-unknown"}, None),
        ({"server_args": {}, "version": "0.5.5.post1"}, "0.5.5.post1"),
        ({"version": None}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_version_is_found_where_engines_tell_it(told: object, version: str | None) -> None:
    assert reported_version(told) == version
