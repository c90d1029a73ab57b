"""Build the compiled core.

Everything else about the package stands in pyproject.toml. Switches (environment variables):
LOADGEN_DEBUG=1 keeps assertions and symbols, checks indices and counts live objects,
LOADGEN_SANITIZE=1 builds with the address and undefined-behaviour sanitizers, either of which ends
the process at a finding, LOADGEN_ANNOTATE=1 writes Cython's annotated HTML.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

COMPILED = (
    "util.timerfd",
    "core.event_flags",
    "core.histogram",
    "core.answer",
    "core.record",
    "core.record_json",
    "core.record_row",
    "core.dialect_scan",
    "core.server_times_scan",
    "core.sse",
    "core.http1",
    "core.kernel_clock",
    "core.read_loop",
    "core.arrivals",
    "core.loop_probe",
    "core.stamped_connection",
    "core.server_threads",
    "core.keep_alive",
    "core.pool",
    "core.schedule",
    "core.pacer",
    "core.request_encoder",
    "core.connections",
    "core.sender",
    "core.accumulator",
    "core.request_rows",
    "core.record_counter",
    "core.request_table",
    "core.number_sample",
    "engines.sim.outlet",
    "engines.sim.emit",
    "engines.sim.planned",
    "workload.files.json_index",
)


def switched(name: str) -> bool:
    """Whether the environment variable `name` is set to something other than 0."""
    return os.environ.get(name, "0") not in ("", "0")


debug, sanitize = switched("LOADGEN_DEBUG"), switched("LOADGEN_SANITIZE")
compile_args = ["-O0", "-g3"] if debug else ["-O2", "-g" if sanitize else "-g0"]
compile_args += ["-Wno-unused-function"]  # Cython's own
link_args = []
if sanitize:
    compile_args += [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-fno-omit-frame-pointer",
    ]
    link_args += ["-fsanitize=address,undefined"]
extensions = [
    Extension(
        f"loadgen.{name}",
        [f"loadgen/{name.replace('.', '/')}.pyx"],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        define_macros=[("LOADGEN_DEBUG", "1")] if debug else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
    )
    for name in COMPILED
]

if __name__ == "__main__":  # the processes that translate import this file again
    setup(
        options={"build_ext": {"parallel": os.cpu_count()}},
        ext_modules=cythonize(
            extensions,
            nthreads=os.cpu_count(),
            annotate=switched("LOADGEN_ANNOTATE"),
            compiler_directives={
                "language_level": "3",
                "boundscheck": debug,
                "wraparound": False,
                "cdivision": True,
                "auto_pickle": False,  # a class that is pickled says itself how
                # Functions are CPython's own: to call one from Python is quicker.
                "binding": False,
                "embedsignature": True,
                "embedsignature.format": "clinic",
            },
        ),
    )
