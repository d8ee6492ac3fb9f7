"""Compiles the loops of decisions; all else about the package stands in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

NAMES = ("annealing", "moves", "traffic")
# Loops check what they are called with, and trust the indices in it. A product and a sum are
# rounded one by one, as Python does, on processors that could do both at once.
DIRECTIVES = {
    "annotation_typing": False,
    "boundscheck": False,
    "cdivision": True,
    "infer_types": True,
    "initializedcheck": False,
    "wraparound": False,
}
FLAGS = ["-O3", "-g0", "-ffp-contract=off"]

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"controller.core.loops.{name}",
                [f"controller/core/loops/{name}.py"],
                extra_compile_args=FLAGS,
                optional=True,  # an agent has no loops, and its node need not have a compiler
            )
            for name in NAMES
        ],
        compiler_directives=DIRECTIVES,
        language_level=3,
    )
)
