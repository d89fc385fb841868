"""Tell a listener something. What it raises is logged: it must not end the thread that tells it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER = logging.getLogger(__name__)
News = TypeVar("News")


def tell(listener: Callable[[News], None] | None, news: News) -> None:
    """Call the listener, if there is one."""
    if listener is not None:
        try:
            listener(news)
        except Exception:
            LOGGER.exception("a listener raised an error")
