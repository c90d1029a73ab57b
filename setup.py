"""Build the compiled core.

Everything else about the package stands in pyproject.toml. Switches (environment variables):
LOADGEN_DEBUG=1 keeps assertions and symbols, checks indices and counts live objects,
LOADGEN_SANITIZE=1 builds with the address and undefined-behaviour sanitizers, either of which ends
the process at a finding, LOADGEN_ANNOTATE=1 writes Cython's annotated HTML.
"""

import glob
import os
from pathlib import PurePath

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCES = sorted(glob.glob("loadgen/**/*.pyx", recursive=True))


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
        ".".join(PurePath(source).with_suffix("").parts),
        [source],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        define_macros=[("LOADGEN_DEBUG", "1")] if debug else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
    )
    for source in SOURCES
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
