"""Loops over arrays, compiled when nstorm is built; in numpy or Python they would take long.

Each module is Python, and next to it stand the C types of its arguments. Compiled or not, the
answers are the same bit for bit. Indices are not checked: who calls a loop vouches for them.
"""

from importlib.machinery import ExtensionFileLoader, PathFinder

MODULES = ("annealing", "moves", "traffic")


def require(is_true: bool) -> None:
    """Refuse arrays of which one would be read beyond its end."""
    if not is_true:
        raise ValueError("a loop was called with arrays whose lengths do not fit together")


# As Python they would decide the same, and take a hundred times as long.
for _name in MODULES:
    _spec = PathFinder.find_spec(f"{__name__}.{_name}", __path__)
    if _spec is None or not isinstance(_spec.loader, ExtensionFileLoader):
        raise ImportError(
            f"{__name__}.{_name} is not compiled for this Python. Install gcc and the headers of "
            "Python (on Debian python3-dev), and then nstorm again. In a checkout type  make setup"
        )
