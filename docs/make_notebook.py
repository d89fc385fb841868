"""Execute the example notebooks: `python docs/make_notebook.py` writes their outputs anew.

A notebook is plain JSON; its cells run here in one namespace, and the last expression of a cell is shown as a
notebook shows it, by `_repr_html_` where there is one. `outputs` is also what the tests compare with.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parent / "notebooks"


def outputs(document: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """What the code cells of a notebook put out, cell after cell."""
    namespace: dict[str, Any] = {"__name__": "__notebook__"}
    found = []
    for count, cell in enumerate(code_cells(document), 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = _run("".join(cell["source"]), namespace)
        shown: list[dict[str, Any]] = []
        if printed.getvalue():
            shown.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
        if value is not None:
            data = {"text/plain": _lines(repr(value))}
            if hasattr(value, "_repr_html_"):
                data = {"text/html": _lines(value._repr_html_()), **data}
            shown.append(
                {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}
            )
        found.append(shown)
    return found


def code_cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of a notebook that hold code."""
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def _run(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell; the value of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), namespace)  # noqa: S102 - our own cells
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)  # noqa: S307 - ditto


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the outputs of all notebooks."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for count, (cell, shown) in enumerate(zip(code_cells(document), outputs(document), strict=True), 1):
            cell["outputs"], cell["execution_count"] = shown, count
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    sys.exit(main())
