"""What the tests of the paper's experiments share: compute cells, look at findings, break values."""

from __future__ import annotations

import copy
import json
import re

from malleable.errors import MalleableError
from malleable.paper.contracts import QUICK


def computed(module, effort=QUICK, only=None):
    """Values of the cells as files hold them; `only` keeps keys that it is true for."""
    values = {}
    for cell in module.cells(effort):
        if only is None or only(cell.key):
            try:
                value = cell.work(**json.loads(json.dumps(dict(cell.arguments))))
            except MalleableError as error:
                value = {"error": error.sentence}
            values[cell.key] = json.loads(json.dumps(value))
    return values


def broken(values, change):
    """A copy of the values after `change(values)`."""
    copied = copy.deepcopy(values)
    change(copied)
    return copied


def scaled(estimate, factor):
    """Multiply a simulated mean and its interval in place."""
    for key in ("mean", "low", "high"):
        estimate[key] *= factor


def verdict(findings, start):
    """The verdict whose statement begins so, and there is only one."""
    (found,) = [v for v in findings.verdicts if v.statement.startswith(start)]
    return found


def check_cells(module, efforts):
    """Keys are unique and name files, arguments survive JSON, and choices are words."""
    for effort in efforts:
        cells = module.cells(effort)
        keys = [cell.key for cell in cells]
        assert len(set(keys)) == len(keys)
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", key) for key in keys)
        for cell in cells:
            assert json.loads(json.dumps(dict(cell.arguments))) == dict(cell.arguments)
            assert cell.weight > 0.0
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in module.CHOICES.items())


def check_findings(findings):
    """Everything that is to be drawn or written fits together, and has words."""
    assert findings.title
    assert findings.source
    assert findings.statement
    for figure in findings.figures:
        assert figure.caption
        for panel in figure.panels:
            for series in panel.series:
                sizes = {
                    len(series.y),
                    *(len(part) for part in (series.low, series.high, series.notes) if part),
                }
                assert sizes == {len(series.x)}, (figure.name, series.name)
    for table in findings.tables:
        assert len({len(column) for column in table.columns.values()}) == 1, table.name
    names = [table.name for table in findings.tables]
    assert len(set(names)) == len(names)
    for one in findings.verdicts:
        assert one.measured
        assert one.holds in {True, False, None}
