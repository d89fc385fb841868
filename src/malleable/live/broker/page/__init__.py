"""The page that shows a running broker: static files, written by hand, with no request to anywhere else.

for path, file in FILES.items():        # path is "/" or "/script.js", under which the server answers
    answer(path, file.text(), file.media_type, HEADERS)
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""What the files are to be sent with: the page runs its own scripts and talks to its own server, only."""


@dataclass(frozen=True)
class PageFile:
    """A file of the page, and what it is."""

    name: str
    media_type: str

    def text(self) -> str:
        """What stands in it."""
        return resources.files(__name__).joinpath(self.name).read_text(encoding="utf-8")


_HTML, _CSS, _SCRIPT = (f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript"))
_SCRIPTS = (
    "script",
    "dom",
    "format",
    "history",
    "charts",
    "timeline",
    "jobs",
    "waiting",
    "ended",
    "speedups",
    "access",
)

FILES = {
    "/": PageFile("index.html", _HTML),
    "/style.css": PageFile("style.css", _CSS),
    **{f"/{name}.js": PageFile(f"{name}.js", _SCRIPT) for name in _SCRIPTS},
}
"""The files by the paths under which the page asks for them."""
