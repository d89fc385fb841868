"""What a broker did, for whoever operates it: a line per event, to standard error or to a file.

    LOGGER.info(entry("submitted", job="17", command="make -j all"))
    2026-11-18T17:10:33.120Z INFO submitted job=17 command="make -j all"

A line is a time, a level, a word for what happened, and what is known of it as `name=value`. What happens to
programs is logged by those who see to them, as they know commands and exit codes; `log_event` logs the rest.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from contextlib import contextmanager
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malleable.errors import ExecutionError, ParameterError, did_you_mean
from malleable.live.core.events import Ended, Registered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from malleable.live.core.events import Event

LOGGER = logging.getLogger(__name__)
LEVELS = {
    name: logging.getLevelNamesMapping()[name.upper()] for name in ("debug", "info", "warning", "error")
}
SOURCES = {"malleable": logging.DEBUG, "uvicorn": logging.WARNING}
"""Loggers whose records are written, from these levels on at least: uvicorn greets every connection."""
PLAIN = re.compile(r"[\w.,:/@%+-]+")
"""Values that need no quotes."""
LONGEST = 200
"""Characters of a value."""
SELDOM_SECONDS = 60.0
"""Seconds between two warnings or errors that are the same."""
OFTEN = {"confirmed", "expected", "progressed", "tick"}
"""Events that come by the thousand, and are logged for those who look for an error."""


def entry(what: str, **known: object) -> str:
    """The text of a line; None is left out, and what is not plain is quoted, so that it is one line."""
    return " ".join(
        [what, *(f"{name}={_value(value)}" for name, value in known.items() if value is not None)]
    )


def _value(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def log_event(event: Event) -> None:
    """Log what the broker was told of a client or of the machine; jobs named by a number are programs."""
    level = logging.DEBUG if event.kind in OFTEN else logging.INFO
    known: dict[str, Any] = {} if not LOGGER.isEnabledFor(level) else event.parameters()
    program = known.get("job", "").isdecimal()
    if not known or (program and isinstance(event, Registered | Ended)):
        return
    if isinstance(event, Registered):
        LOGGER.log(level, entry("joined", **{name: value for name, value in known.items() if value}))
    else:
        LOGGER.log(level, entry(event.kind.replace("_", "-"), **known))


@contextmanager
def logging_to(file: str | None, level: str) -> Iterator[None]:
    """Write the log to a file, which may be moved away at any time, or to standard error."""
    if level not in LEVELS:
        raise ParameterError(f"log-level must be a level, got {level!r:.40}", did_you_mean(level, LEVELS))
    handler = _handler(file)
    handler.addFilter(_Seldom())
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    loggers = [logging.getLogger(name) for name in SOURCES]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(max(LEVELS[level], SOURCES[logger.name]))
    try:
        yield
    finally:
        for logger, earlier in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(earlier)
        handler.close()


def _handler(file: str | None) -> logging.Handler:
    if file is None:
        return logging.StreamHandler(sys.stderr)
    try:
        handler = _LogFile(file, encoding="utf-8", errors="backslashreplace")
        Path(file).chmod(0o600)  # commands stand in it
    except OSError as error:
        raise ExecutionError(
            f"cannot write the log {file!r}: {error.strerror}", "name another file"
        ) from None
    return handler


class _LogFile(WatchedFileHandler):
    """A log that is moved away is begun anew; a disk that is full loses lines, and stops nothing."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A line is lost."""


class _Seldom(logging.Filter):
    """Of warnings and errors of one text, whatever stands in it, passes one a minute, with their number."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """When each text was last written, and how often it was not since."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        if record.levelno < logging.WARNING:
            return True
        now, text = time.monotonic(), (record.name, str(record.msg))
        last, left_out = self._seen.get(text, (-SELDOM_SECONDS, 0))
        if now - last < SELDOM_SECONDS:
            self._seen[text] = last, left_out + 1
            return False
        if left_out:
            record.msg, record.args = f"{record.getMessage()} (and {left_out} more like this)", None
        self._seen = {key: (when, n) for key, (when, n) in self._seen.items() if now - when < SELDOM_SECONDS}
        self._seen[text] = now, 0
        return True
