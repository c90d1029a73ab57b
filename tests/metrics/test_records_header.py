"""Provenance holds all that is needed to repeat a run, and no secret."""

import hashlib
import os
import subprocess

import numpy as np
import orjson
import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.metrics.records.header import PACKAGES, provenance
from loadgen.util import machine
from loadgen.util.child_process import decode, encode
from loadgen.util.machine import CpuTimes, disturbance
from loadgen.version import __version__
from loadgen.workload.arrivals import Schedule

SECRET = "hunter2"
SCHEDULE = Schedule.constant(10, 20)


def of(settings, asked=None):
    return provenance(settings, asked or settings, {"name": "vllm", "version": "1"})


def test_provenance_is_json():
    made = of(RunSettings(request_rate=10.0, extra_body={"a": 1}, metadata=("a=b",)))
    assert orjson.loads(orjson.dumps(made)) == made


def test_settings_are_kept_as_resolved_and_as_asked():
    asked = RunSettings(request_rate=5.0)
    made = of(asked.replace(model="found", backend="openai-chat"), asked)
    assert made["asked"] == {"request_rate": 5.0}
    assert (made["settings"]["model"], made["settings"]["backend"]) == ("found", "openai-chat")


def test_all_three_seeds_are_named_each_its_own_or_the_runs():
    assert of(RunSettings(seed=7, seed_prompts=9))["seeds"] == {
        "arrivals": 7,
        "prompts": 9,
        "order": 7,
    }
    assert of(RunSettings(seed=7, seed_order=0))["seeds"] == {
        "arrivals": 7,
        "prompts": 7,
        "order": 0,
    }


def test_the_schedule_is_named_by_the_hash_of_its_due_times():
    due = np.arange(20, dtype="<i8") * 100_000_000
    assert SCHEDULE.about() == {
        "sha256": hashlib.sha256(due.tobytes()).hexdigest(),
        "requests": 20,
        "sessions": 20,
        "duration_s": 2.0,
    }


def test_the_engine_is_kept_as_told():
    assert of(RunSettings())["engine"] == {"name": "vllm", "version": "1"}


def test_versions_are_null_for_packages_not_installed(monkeypatch):
    assert all(of(RunSettings())["versions"][name] for name in PACKAGES)
    monkeypatch.setattr("loadgen.metrics.records.header.PACKAGES", ("no-such-package",))
    assert of(RunSettings())["versions"] == {"loadgen": __version__, "no-such-package": None}


def test_the_machine_is_described_with_its_limits():
    described = of(RunSettings())["machine"]
    assert described["cores"] >= described["usable_cores"] >= 1
    soft, hard = described["open_files_limit"]
    assert soft <= hard or hard == -1
    assert described["python"].startswith("3.")


def test_provenance_holds_no_secret():
    settings = RunSettings(api_key=SECRET, header=(f"X={SECRET}",), base_url=f"http://u:{SECRET}@h")
    text = str(of(settings))
    assert SECRET not in text
    assert "http://(given)@h" in text


# -- the machine


def busy(at, used, stolen=0.0, own=0.0):
    return CpuTimes(at_s=at, used_s=used, stolen_s=stolen, own_s=own)


def test_quiet_machine_has_no_disturbance():
    assert disturbance(busy(0, 100), busy(10, 100.9), 0.0) == ""


def test_the_work_of_others_is_what_neither_we_nor_our_engine_did(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    # In 10 s all cores worked 35 s: 5 s for us, 10 s for the engine.
    said = disturbance(busy(0, 100, own=1), busy(10, 135, own=6), 10.0)
    assert said == "other processes used 2.0 of 4 cores"


def test_our_own_work_and_that_of_the_engine_is_no_disturbance():
    assert disturbance(busy(0, 100, own=0), busy(10, 115, own=5), 10.0) == ""


def test_time_that_the_hypervisor_took_is_named():
    assert disturbance(busy(0, 0), busy(10, 0, stolen=0.5), 0.0) == "the hypervisor took 0.05 cores"


def test_no_elapsed_time_gives_no_disturbance():
    assert disturbance(busy(5, 0), busy(5, 100), 0.0) == ""


def test_readings_grow():
    first, second = CpuTimes.now(), CpuTimes.now()
    assert second.at_s >= first.at_s
    assert second.used_s >= first.used_s
    assert second.own_s >= first.own_s > 0


def test_missing_process_has_used_no_cpu_time():
    assert machine.process_cpu_s(None) == 0
    assert machine.process_cpu_s(2**22 + 1) == 0


@pytest.mark.integration
def test_a_process_that_has_ended_but_was_not_waited_for_does_not_run():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        assert machine.is_running(process.pid)
        process.kill()
        # It has ended; its entry is still there.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not machine.is_running(process.pid)
    assert not machine.is_running(2**22 + 1)


# -- what processes tell each other


def test_a_message_is_one_line_and_comes_back_equal():
    for message in ({"a": b"\n"}, RunSettings(seed=3), "two\nlines", None):
        line = encode(message)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert decode(line) == message


def test_an_error_comes_back_with_its_field_and_remedy():
    error = decode(encode(BadInput("--rate", "0 is no rate", "give more")))
    assert isinstance(error, BadInput)
    assert (error.field, error.problem, error.remedy) == ("--rate", "0 is no rate", "give more")
    assert str(error) == "--rate: 0 is no rate; give more"
