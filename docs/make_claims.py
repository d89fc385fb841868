"""Write the page "The paper, claim by claim" from a reproduction: `make paper`, then this.

Every number, verdict and sentence on the page is read from the findings of that run. Figures that say most
are copied beside it.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WIDTH = 108
BADGES = {True: "holds", False: "**fails**", None: "undecided"}


def page(findings: dict[str, dict[str, Any]], manifest: dict[str, Any], pictures: set[str]) -> str:
    """The page as Markdown."""
    machine, effort = manifest["machine"], manifest["effort"]
    held, counted = ({True: 0, False: 0} for _ in range(2))
    for found in findings.values():
        of_the_paper = not found["source"].startswith("beyond the paper")
        counted[of_the_paper] += len(found["verdicts"])
        held[of_the_paper] += sum(verdict["holds"] is True for verdict in found["verdicts"])
    where = f"{machine['cpu']}, {machine['cores']} cores; malleable {manifest['versions']['malleable']}"
    command = "make paper" + ("" if effort["name"] == "normal" else f" ARGS=--{effort['name']}")
    parts = [
        "# The paper, claim by claim",
        wrapped(
            f"Made by `docs/make_claims.py` from a run of `{command}` ({where}). In it "
            f"{held[True]} of {counted[True]} claims of the paper hold, and {held[False]} of "
            f"{counted[False]} of this project's own, beyond the paper. Verdicts are computed from the "
            "numbers beside them; the page that "
            "`make paper` writes has all figures and tables. Intervals are at 95 % unless stated otherwise."
        ),
    ]
    for name, found in findings.items():
        parts += section(name, found, pictures)
    return "\n\n".join(parts) + "\n"


def section(name: str, found: dict[str, Any], pictures: set[str]) -> list[str]:
    """One experiment."""
    parts = [f"## {found['title']}", wrapped(f"*{found['source']}* · `malleable paper --only {name}`")]
    parts += [wrapped(paragraph) for paragraph in found["statement"].split("\n\n")]
    for figure in found["figures"]:
        if figure["name"] in pictures:
            parts += [
                f"![{figure['title']}](../images/paper/{figure['name']}.svg)",
                wrapped(figure["caption"]),
            ]
    errata = [table for table in found["tables"] if table["name"] == "errata"]
    if errata:
        parts.append(errors(errata[0]["columns"], found["verdicts"]))
    elif found["verdicts"]:
        rows = [
            f"| {cell(v['statement'])} | {cell(v['measured'])} | {BADGES[v['holds']]} |"
            for v in found["verdicts"]
        ]
        parts.append("\n".join(["| Statement | Measured | Verdict |", "|---|---|---|", *rows]))
    parts += [wrapped(remark, "- ", "  ") for remark in found["remarks"]]
    return parts


def errors(columns: dict[str, list[str]], verdicts: list[dict[str, Any]]) -> str:
    """What is wrong in the paper, what is right, and the check."""
    head = [*(name.capitalize() for name in columns), "Verdict"]
    rows = zip(*columns.values(), [BADGES[verdict["holds"]] for verdict in verdicts], strict=True)
    lines = [" | ".join(map(cell, row)) for row in (head, *rows)]
    return "\n".join([f"| {lines[0]} |", "|---" * len(head) + "|", *(f"| {line} |" for line in lines[1:])])


def cell(text: str) -> str:
    """Text that fits into a table."""
    return " ".join(text.split()).replace("|", "\\|")


def wrapped(text: str, first: str = "", then: str = "") -> str:
    """A paragraph in lines that are not too long."""
    return textwrap.fill(
        " ".join(text.split()), WIDTH, initial_indent=first, subsequent_indent=then,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def main() -> None:
    """Read a reproduction and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("reproduction", type=Path, nargs="?", default=Path("out/paper"))
    parser.add_argument("--picture", action="append", default=[], help="figure to copy beside the page")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    place = given.reproduction
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    findings = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((place / "findings").glob("*.json"))
    }
    images = given.out / "images" / "paper"
    images.mkdir(parents=True, exist_ok=True)
    for name in given.picture:
        (images / f"{name}.svg").write_bytes((place / "figures" / f"{name}.svg").read_bytes())
    pictures = {path.stem for path in images.glob("*.svg")}
    target = given.out / "explanation" / "paper.md"
    target.write_text(page(findings, manifest, pictures), encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
