"""Run every `bench_*` module of this folder, print a table for each and write `out/bench.json`."""

import importlib
import json
import os
import pkgutil
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks


def machine() -> dict:
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version()}


def show(title: str, rows: list[dict]) -> None:
    table = Table(title=title, title_justify="left")
    for key in rows[0]:
        table.add_column(key)
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(table)


def main() -> None:
    wanted = set(sys.argv[1:])
    found = {"machine": machine()}
    print(found["machine"])
    for info in pkgutil.iter_modules(benchmarks.__path__):
        name = info.name.removeprefix("bench_")
        if info.name.startswith("bench_") and (not wanted or name in wanted):
            module = importlib.import_module(f"benchmarks.{info.name}")
            found[name] = module.run()
            show(f"{name}: {module.__doc__.splitlines()[0]}", found[name])
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "bench.json").write_text(json.dumps(found, indent=2))
    print(f"written to {out / 'bench.json'}")


if __name__ == "__main__":
    main()
