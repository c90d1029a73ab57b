"""Build the compiled core.

Everything else about the package stands in pyproject.toml. Switches (environment variables):
LOADGEN_DEBUG=1 keeps assertions and symbols, checks indices and counts live objects, LOADGEN_SANITIZE=1
builds with the address and undefined-behaviour sanitizers, either of which ends the process at a finding,
LOADGEN_ANNOTATE=1 writes Cython's annotated HTML.
"""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

COMPILED = (
    "core.histogram",
    "core.record",
    "core.record_json",
    "core.dialect_scan",
    "core.sse",
    "core.http1",
    "core.read_loop",
    "core.stamped_connection",
    "core.accumulator",
    "engines.sim.emit",
    "engines.sim.planned",
    "workload.files.json_index",
)
# Those that take more time per event or request unless what Cython calls inline is.
INLINED = ("core.accumulator", "core.dialect_scan", "core.http1", "core.record_json", "core.sse")


def switched(name: str) -> bool:
    """Whether the environment variable `name` is set to something other than 0."""
    return os.environ.get(name, "0") not in ("", "0")


debug, sanitize = switched("LOADGEN_DEBUG"), switched("LOADGEN_SANITIZE")
# Symbols would be three quarters of a wheel; of the rest, tables for unwinding and padding would be a tenth, stubs for
# calls of Python's functions 2 %, and errors 5 % if they were not taken to be improbable. -Os would save a quarter, but
# reading an event would take 1.7 times as long.
released = sys.platform == "linux" and not (debug or sanitize)
compile_args = ["-O0", "-g3"] if debug else ["-O2", "-g" if sanitize else "-g0"]
if released:
    compile_args += ["-fno-asynchronous-unwind-tables", "-fno-plt", "-fvisibility=hidden"]
    compile_args += ["-Wno-unused-function", "--param=builtin-expect-probability=100"]
link_args = ["-Wl,--strip-all", "-Wl,-z,noseparate-code"] if released else []
if sanitize:
    compile_args += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    link_args += ["-fsanitize=address,undefined"]

macros = [("LOADGEN_DEBUG", "1")] if debug else [("CYTHON_WITHOUT_ASSERTIONS", "1")]
# Code of Cython that is inlined would be 8 % of all modules.
called_macros = [*macros, ("CYTHON_INLINE", "")] if released else macros
extensions = [
    Extension(
        f"loadgen.{name}",
        [f"loadgen/{name.replace('.', '/')}.pyx"],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        define_macros=macros if name in INLINED else called_macros,
    )
    for name in COMPILED
]

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        extensions,
        annotate=switched("LOADGEN_ANNOTATE"),
        compiler_directives={
            "language_level": "3",
            "boundscheck": debug,
            "wraparound": False,
            "cdivision": True,
            "auto_pickle": False,  # a class that is pickled says itself how
            # Functions are CPython's own: to call one from Python is quicker, and modules are smaller.
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
        },
    ),
)
