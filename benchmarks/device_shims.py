"""What lets this library be imported on a bare machine that lends a GPU; nothing of it is needed elsewhere.

NumPy 2.5 has no `row_stack`, which numba-cuda 0.30 still asks for. Where pydantic or annotated-types are not
installed, stand-ins that check nothing take their place: workloads there come from this library's own files.
"""

import dataclasses
import importlib.util
import os
import sys
import types
from pathlib import Path

import numpy as np

DROPPED = "row_stack"


def prepare() -> list[str]:
    """Make the tree importable; returns what had to be replaced."""
    replaced = []
    root = Path(__file__).resolve().parent.parent
    if str(root / "src") not in sys.path:
        sys.path.insert(0, str(root / "src"))
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    os.environ.setdefault("XDG_CACHE_HOME", "/tmp/malleable-cache")
    if not hasattr(np, DROPPED):
        setattr(np, DROPPED, np.vstack)
        replaced.append(f"numpy.{DROPPED}")
    if importlib.util.find_spec("annotated_types") is None:
        sys.modules["annotated_types"] = _bounds()
        replaced.append("annotated_types")
    if importlib.util.find_spec("pydantic") is None:
        sys.modules["pydantic"] = _unchecked()
        replaced.append("pydantic")
    return replaced


def _bounds() -> types.ModuleType:
    module = types.ModuleType("annotated_types")
    for name in ("Ge", "Gt", "Le", "Lt", "MinLen", "MaxLen"):
        made = dataclasses.make_dataclass(name, [("value", object)], frozen=True)
        setattr(module, name, made)
    module.Interval = module.Len = object
    return module


def _unchecked() -> types.ModuleType:
    module = types.ModuleType("pydantic")

    class TypeAdapter:
        def __init__(self, annotation, config=None):
            self.annotation, self.config = annotation, config

        def validate_python(self, value):
            return value

    module.TypeAdapter = TypeAdapter
    module.ConfigDict = dict
    module.ValidationError = type("ValidationError", (Exception,), {})
    return module
