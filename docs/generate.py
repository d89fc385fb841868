"""Write the reference pages from the code: `make docs`. With --check, only say which are stale (exit 1).

cli.md holds the --help of every command, kinds.md what `malleable.api.listing` says of every kind,
api.md the signatures and docstrings of the public names, http.md the OpenAPI description of the broker.
Nothing in them is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import itertools
import os
import re
import sys
import textwrap
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

# A terminal of a fixed width without colours; typer reads some of these when it is imported.
os.environ.update(
    {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
)
for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)

from http_page import http_parts  # noqa: E402 - after the environment
from typer.testing import CliRunner  # noqa: E402

import malleable  # noqa: E402
from malleable import (  # noqa: E402
    catalog,
    contracts,
    errors,
    fitting,
    live,
    model,
    results,
    statistics,
)
from malleable.api import listing  # noqa: E402
from malleable.cli import app  # noqa: E402
from malleable.execution import ray  # noqa: E402
from malleable.model import job_files  # noqa: E402
from malleable.theory import (  # noqa: E402
    fw_cam,
    markov_chain,
    meanfield,
    price_path,
    queues,
    refined_mean_field,
    relaxed,
    whittle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDTH = 108
HERE = Path(__file__).parent
SOURCES = HERE.parent / "src" / "malleable"
NOTE = "<!-- Written by docs/generate.py (`make docs`); edit the code instead. -->"


def main() -> int:
    """Write the pages, or check that they are as they would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if a page is stale")
    parser.add_argument("--out", type=Path, default=HERE / "reference")
    options = parser.parse_args()
    stale = 0
    for name, make in PAGES.items():
        file, text = options.out / name, make()
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{name} {'is stale: run `make docs`' if options.check else 'written'}")
        if not options.check:
            file.write_text(text, encoding="utf-8")
    return int(options.check and stale > 0)


def page(title: str, *parts: str) -> str:
    """A page: title, note, and its parts, one empty line between them."""
    return "\n\n".join([f"# {title}", NOTE, *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def fenced(text: str) -> str:
    """A block of plain text, without colours and without space at the ends of lines."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.rstrip() for line in plain.splitlines()]
    return "\n".join(["```text", *"\n".join(lines).strip("\n").splitlines(), "```"])


# --- cli.md -----------------------------------------------------------------------------------------------


def cli() -> str:
    """The help of every command."""
    verbs = [command.name or "" for command in app.registered_commands]
    intro = (
        "Each command prints a table for people, or with `--json` one JSON document on stdout (see\n"
        "[JSON documents](json.md)). Progress, warnings and errors go to stderr.\n\n"
        "| exit status | meaning |\n|---|---|\n| 0 | good |\n| 1 | an error of ours: one line, and a hint |\n"
        "| 2 | usage: no such command or option |\n| 130 | interrupted by Ctrl-C |\n"
        "| 143, 129 | interrupted by SIGTERM (`kill`), by SIGHUP (a terminal that was closed) |\n\n"
        "Standard output that is full is an error (1); a reader that goes away (`| head`) and a standard\n"
        "output that is closed are not (0). `python -m malleable` is the same command."
    )
    sections = [f"## malleable {verb}\n\n{fenced(_help(verb))}" for verb in verbs]
    return page("Command line", intro, f"## malleable\n\n{fenced(_help())}", *sections)


def _help(*verb: str) -> str:
    result = CliRunner().invoke(app, [*verb, "--help"], prog_name="malleable", catch_exceptions=False)
    return result.output


# --- kinds.md ---------------------------------------------------------------------------------------------

FAMILY_INTRO = {
    "speedups": "The `speedup` of a class: how much faster a job runs on k cores than on one.",
    "distributions": "The `size` of a class (run time on one core), or the `interval` of renewal arrivals.",
    "arrivals": "The `arrivals` of a class.",
    "capacities": "The `--capacity` of `simulate`, `compare` and `bound`: how many of the cores there are\n"
    "over time, as in `failures:nodes=8,up=100,down=5`.",
    "policies": "The `--policy` of a command. Options ride behind the name: `fw-cam:beta=0.9`; a list has\n"
    "slashes between its entries: `fixed-width:widths=4/2/8`.",
    "traces": "The `--format` of a log. It is found by content where it is not given.",
}


def kinds() -> str:
    """Every kind of every family, with its parameters."""
    intro = (
        "What may stand in a workload file, behind `--policy`, `--capacity` or `--format`, with the\n"
        "allowed values. `malleable list` prints the same. A key in the column *or* may be given in place\n"
        "of the one before it."
    )
    parts = []
    for family in catalog.FAMILIES:
        parts.append(f"## {family.capitalize()}\n\n{FAMILY_INTRO[family]}")
        parts += [_kind(family, row) for row in listing(family)]
    parts.append("## Workloads\n\nBuilt-in workloads, by name in place of a file.")
    parts += [f"### {row['name']}\n\n{row['summary']}." for row in listing("workloads")]
    return page("Kinds", intro, *parts)


def _kind(family: str, row: dict[str, Any]) -> str:
    module = catalog.kinds(family)[catalog.normalised(row["name"])].rpartition(".")[2]
    source = f"[source](../../src/malleable/{family}/{module}.py)"
    return "\n\n".join(
        [f"### {row['name']}", f"{row['summary']} ({source})", *_parameters(row["parameters"])]
    )


def _parameters(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    lines = ["| key | or | allowed | default |", "|---|---|---|---|"]
    for row in rows:
        default = "" if "default" not in row else f"`{_plain(row['default'])}`"
        other = f"`{row['or']}`" if "or" in row else ""
        lines.append(f"| `{row['name']}` | {other} | {row['allowed']} | {default} |")
    yield "\n".join(lines)


def _plain(value: Any) -> str:
    return {True: "true", False: "false", (): "[]"}.get(value, f"{value}")


# --- api.md -----------------------------------------------------------------------------------------------

RETURNED = (
    relaxed.Bound,
    relaxed.ClassBound,
    price_path.JobsBound,
    contracts.Allocation,
    refined_mean_field.Refined,
    results.ClassResult,
    results.Difference,
    results.Status,
    statistics.Estimate,
    statistics.Percentiles,
    statistics.Controls,
    fitting.Fit,
    fitting.Point,
    fitting.SizeFit,
)
THEORY: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (fw_cam, ("plan", "FixedWidthPlan", "Pool")),
    (whittle, ("optimal_action", "whittle_index", "indexability", "Indexability")),
    (markov_chain, ("solve", "ExactChain")),
    (queues, ("erlang_c", "mmc", "mphc", "mgc_response_time", "QueueMeans")),
)
MEASURING = ("Learner", "Measurements", "Measured", "measure")
CONTRACTS = (contracts.Speedup, contracts.Distribution, contracts.Arrivals, contracts.Policy)


def api() -> str:
    """Signatures and docstrings of the public names, of what they return, and of the extension points."""
    public = [_entry(name, getattr(malleable, name)) for name in malleable.__all__]
    returned = [_entry(cls.__name__, cls) for cls in (*RETURNED, *_own_classes(meanfield))]
    theory = [_entry(name, getattr(module, name)) for module, names in THEORY for name in names]
    readers = (job_files.read_jobs, job_files.parse_jobs, job_files.stream_jobs)
    files = [_entry(f.__name__, f) for f in readers]
    raised = [
        f"| `{cls.__name__}` | {_summary(cls)} |"
        for cls in [*_own_classes(errors), model.ConditionWarning]
        if cls is not errors.MalleableError
    ]
    return page(
        "Python",
        "Everything in *Public names* is imported from `malleable` and stays stable. The rest is imported\n"
        "from the module that is named.",
        "## Public names",
        *public,
        "## What they return",
        *returned,
        "## Job files\n\nFrom `malleable.model.job_files`.",
        *files,
        "## Measurements\n\nFrom `malleable.fitting`; [how to use them](../how-to/use-measured-speedups.md).",
        *[_entry(name, getattr(fitting, name)) for name in MEASURING],
        "## Executors\n\n`Executor` is imported from `malleable.live`, with the extra `malleable[live]`;\n"
        "[how to use it](../how-to/from-processpoolexecutor.md). `RayExecutor` needs `malleable[ray]`.",
        _entry("Executor", live.Executor),
        _entry("RayExecutor", ray.RayExecutor),
        "## Theory\n\nFrom the modules of `malleable.theory`.",
        *theory,
        "## Extension points\n\nFrom `malleable.contracts`; [CONTRIBUTING](../../CONTRIBUTING.md) shows how "
        "to add a kind.",
        *[_entry(cls.__name__, cls) for cls in CONTRACTS],
        "## Errors\n\nFrom `malleable.errors`. All are a `MalleableError`: `problem`, `hint` and `path`.",
        "\n".join(["| name | meaning |", "|---|---|", *raised]),
    )


def _own_classes(module: Any) -> list[type]:
    """The public classes that a module defines, in the order of the file."""
    found = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    return sorted(found, key=lambda cls: inspect.getsourcelines(cls)[1])


def _entry(name: str, value: Any) -> str:
    """A heading, the signature, the docstring, and the members of a class."""
    signature = [fenced(_signature(name, value))] if _has_signature(value) else []
    parts = [f"### {name}", f"From `{value.__module__}`.", *signature, inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        rows = [f"| `{member}` | {text} |" for member, text in _Members(value).rows]
        parts += ["\n".join(["| member | |", "|---|---|", *rows])] if rows else []
    return "\n\n".join(parts)


def _has_signature(value: Any) -> bool:
    return not inspect.isclass(value) or dataclasses.is_dataclass(value) or issubclass(value, tuple)


def _signature(name: str, value: Any) -> str:
    """The signature on one line if it fits, else one parameter a line."""
    shown = inspect.signature(value)
    if inspect.isclass(value):
        shown = shown.replace(return_annotation=inspect.Signature.empty)
    text = f"{name}{_unquoted(shown)}"
    if len(text) <= WIDTH:
        return text
    lines, star = [], False
    for parameter in shown.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            star = True
            lines.append("*")
        lines.append(_unquoted(parameter))
    result = "" if shown.return_annotation is inspect.Signature.empty else f" -> {shown.return_annotation}"
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){result}"


def _unquoted(signature: Any) -> str:
    """Annotations as they stand in the source: with postponed evaluation they are strings."""
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", str(signature))
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


SHARED_BASES = ("LazyExecutor",)
"""Classes that no page names, whose methods are shown with those of the classes that have them."""


class _Members:
    """The public members of a class that are documented: fields, properties, methods."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """Each member, written as it is used, with one sentence."""
        for name, text in self._attributes.items():
            if not name.startswith("_"):
                yield name, text
        for name, member in self._own().items():
            if name.startswith("_") or name in {"check", *self._attributes}:
                continue
            function = _function(member)
            if function is not None and inspect.getdoc(function):
                yield name + self._arguments(member, function), _cell(_summary(function))

    def _own(self) -> dict[str, Any]:
        """What the class defines, and what it has of a base that is there for its methods alone."""
        bases = [base for base in self.cls.__mro__[1:] if base.__name__ in SHARED_BASES]
        return {name: member for cls in (self.cls, *bases) for name, member in vars(cls).items()}

    @staticmethod
    def _arguments(member: Any, function: Callable[..., Any]) -> str:
        if isinstance(member, property | cached_property):
            return ""
        own = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
        kept = own if isinstance(member, staticmethod) else own[1:]
        return str(inspect.Signature(kept))

    @cached_property
    def _attributes(self) -> dict[str, str]:
        """Fields with the string that stands below them."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.cls)))
        body = tree.body[0].body  # type: ignore[attr-defined]
        found = {}
        for field, text in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                documented = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                if documented and isinstance(text.value.value, str):
                    found[field.target.id] = _cell(text.value.value)
        return found


def _function(member: Any) -> Callable[..., Any] | None:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member if inspect.isfunction(member) else None


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


# --- http.md ----------------------------------------------------------------------------------------------


def http() -> str:
    """Every operation of the broker's HTTP interface."""
    return page("HTTP API", *http_parts())


PAGES = {"cli.md": cli, "kinds.md": kinds, "api.md": api, "http.md": http}

if __name__ == "__main__":
    sys.exit(main())
