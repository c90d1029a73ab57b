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

SHARED = "loadgen.core.shared_types"  # written by Cython: the types of its functions, once for all modules
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


def switched(name: str) -> bool:
    """Whether the environment variable `name` is set to something other than 0."""
    return os.environ.get(name, "0") not in ("", "0")


debug, sanitize = switched("LOADGEN_DEBUG"), switched("LOADGEN_SANITIZE")
# Symbols would be three quarters of a wheel; of the rest, tables for unwinding and padding would be a tenth, and stubs
# for calls of Python's functions 2 %. -Os would save a quarter, but reading an event would take 1.7 times as long.
released = sys.platform == "linux" and not (debug or sanitize)
compile_args = ["-O0", "-g3"] if debug else ["-O2", "-g" if sanitize else "-g0"]
compile_args += ["-fno-asynchronous-unwind-tables", "-fno-plt", "-fvisibility=hidden"] if released else []
link_args = ["-Wl,--strip-all", "-Wl,-z,noseparate-code"] if released else []
if sanitize:
    compile_args += ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    link_args += ["-fsanitize=address,undefined"]

sources = {f"loadgen.{name}": f"loadgen/{name.replace('.', '/')}.pyx" for name in COMPILED}
sources[SHARED] = "loadgen/core/shared_types.c"
extensions = [
    Extension(
        name,
        [source],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        define_macros=[("LOADGEN_DEBUG", "1")] if debug else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
    )
    for name, source in sources.items()
]

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        extensions,
        shared_utility_qualified_name=SHARED,
        shared_utility_features_disabled=["AutoPickle", "CythonFunction", "MemoryView", "PythonClasses"],
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
