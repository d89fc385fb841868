"""Versions of what numbers depend on."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import metadata
from platform import python_version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGES = ("numpy", "numba", "malleable")
"""What a simulated number depends on."""


@cache
def installed_versions() -> dict[str, str]:
    """Python and the packages that numbers depend on."""
    return {"python": python_version(), **versions_of(PACKAGES)}


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those packages that are installed; read from metadata, so nothing is imported."""
    found = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
