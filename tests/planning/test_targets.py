"""Targets are read as they are meant, and what makes no sense is one line with a hint."""

from __future__ import annotations

import pytest

from malleable.errors import ParameterError
from malleable.planning.targets import read_share, read_target

CLASSES = ("train", "width 3-4", "a(b)")


@pytest.mark.parametrize(
    ("text", "metric", "job_class", "limit"),
    [
        ("cost < 3", "cost", None, 3.0),
        ("cost<=3e-2", "cost", None, 0.03),
        ("response < 90s", "response", None, 90.0),
        (" P95 ( train )  ≤ 2 h ", "p95", "train", 7200.0),
        ("p99(width 3-4) < 1.5min", "p99", "width 3-4", 90.0),
        ("p50(a(b)) < .5d", "p50", "a(b)", 43200.0),
        ("slowdown < 1_000", "slowdown", None, 1000.0),
        ("wait < 250 ms", "wait", None, 0.25),
    ],
)
def test_what_is_meant(text, metric, job_class, limit):
    """Metric, class and limit, in seconds where there is a unit."""
    found = read_target(text, CLASSES)
    assert (found.metric, found.job_class, found.limit) == (metric, job_class, pytest.approx(limit))
    assert read_target(found) is found


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("p95 <", "no number", "for example"),
        ("p95", "not a target", "for example"),
        ("", "not a target", "for example"),
        ("cost > 3", "not a target", "for example"),
        ("p97 < 3", "no metric 'p97'", "did you mean"),
        ("kost < 3", "no metric 'kost'", "cost"),
        ("p95(tain) < 3", "no class is called 'tain'", "train"),
        ("cost < -1", "positive and finite", "for example"),
        ("response < 0 s", "positive and finite", "for example"),
        ("cost < NaN", "positive and finite", "for example"),
        ("cost < inf", "positive and finite", "for example"),
        ("cost < 1e999", "positive and finite", "for example"),
        ("cost < three", "not a number", "for example"),
        ("cost < 3 < 4", "cost has no unit", "write cost < 3"),
        ("cost < 3h", "cost has no unit", "write cost < 3"),
        ("slowdown < 5 h", "slowdown has no unit", "write slowdown < 5"),
        ("response < 3 parsec", "no unit 'parsec'", "h or d"),
    ],
)
def test_what_makes_no_sense(text, words, hint):
    """A target that is none says what is wrong with it, and shows one that is."""
    with pytest.raises(ParameterError, match=words) as told:
        read_target(text, CLASSES)
    assert hint in told.value.hint
    assert "\n" not in told.value.sentence


def test_shares():
    """20% is 0.2; nothing, less than nothing is left, and words are refused."""
    assert read_share("20%", "growth") == read_share(" .2 ", "growth") == read_share(0.2, "growth") == 0.2
    assert read_share("-50%", "growth") == -0.5
    for text in ("x", "0", "-100%", "nan", "inf%", ""):
        with pytest.raises(ParameterError, match="growth must be a share"):
            read_share(text, "growth")
