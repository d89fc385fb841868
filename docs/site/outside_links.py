"""A hook of MkDocs: pages may link to files outside docs/, which a site would not hold.

CONTRIBUTING and CHANGELOG become pages. A source file that some page links to becomes a page that shows it.
The README's sections are those of the landing page.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(?<=\]\()([^)#:]+)(#[^)]*)?(?=\))")
LANGUAGES = {".py": "python", ".toml": "toml"}


def on_files(files: Files, config: Any) -> Files:
    """Add what pages link to and docs/ does not hold."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    for file in [file for file in files if file.is_documentation_page()]:
        for match in LINK.finditer(file.content_string):
            target = _outside(file.src_uri, match.group(1))
            page = "" if target is None else _page(target)
            if page.startswith("source/") and files.get_file_from_path(page) is None:
                files.append(File.generated(config, page, content=_shown(str(target))))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to files outside docs/ lead to their pages."""

    def inside(match: re.Match[str]) -> str:
        target = _outside(page.file.src_uri, match.group(1))
        if target is None:
            return match.group(0)
        here = posixpath.dirname(page.file.src_uri) or "."
        return posixpath.relpath(_page(target), here) + (match.group(2) or "")

    return LINK.sub(inside, markdown)


def _outside(page: str, link: str) -> str | None:
    """The file in the repository that a link of a page means, if it is not one of docs/."""
    start = "" if page in PAGES else "docs"
    target = posixpath.normpath(posixpath.join(start, posixpath.dirname(page), link))
    within = target.startswith("docs/") and page not in PAGES
    return None if within or not (ROOT / target).is_file() else target


def _page(target: str) -> str:
    """The page of a file of the repository."""
    if target == "README.md":
        return "index.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return target if target in PAGES else f"source/{target}.md"


def _shown(target: str) -> str:
    language = LANGUAGES.get(Path(target).suffix, "text")
    text = (ROOT / target).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {target}\n\n````{language}\n{text}````\n"
