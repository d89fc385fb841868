"""The letters of figures: a small copy of matplotlib's own font, because a large one makes PDFs slow.

Every PDF embeds the letters that it shows. To pick them out of DejaVu Sans, with its six thousand glyphs and
their typesetting tables, takes longer than to draw all else; the copy has those that figures may need.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from fontTools import subset
from matplotlib.font_manager import FontProperties, findfont, fontManager

LARGE, SMALL = "DejaVu Sans", "malleable sans"
LETTERS = (range(0x20, 0x180), range(0x370, 0x400), range(0x2000, 0x2150), range(0x2190, 0x2300))
"""Latin, Greek, punctuation with raised and lowered digits, arrows and mathematics."""


@functools.cache
def families() -> tuple[str, ...]:
    """Names of the fonts to use, the first one that has a letter."""
    for weight in ("normal", "bold"):
        path = Path(_folder().name) / f"{weight}.ttf"
        _copy_small(findfont(FontProperties(family=LARGE, weight=weight)), path)
        fontManager.addfont(path)
    return SMALL, LARGE


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the copies are; it is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="malleable-fonts-")


def _copy_small(font: Any, path: Path) -> None:
    """Write a copy of the font with our letters only, under our name."""
    options = subset.Options(notdef_outline=True, recalc_timestamp=False)
    options.drop_tables += ["FFTM", "GSUB", "GPOS", "GDEF"]
    with subset.load_font(str(font), options) as whole:
        picker = subset.Subsetter(options)
        picker.populate(unicodes=[letter for block in LETTERS for letter in block])
        picker.subset(whole)
        for record in whole["name"].names:
            # A changed font must not go by its old name.
            record.string = record.toUnicode().replace(LARGE, SMALL).replace("DejaVuSans", "MalleableSans")
        subset.save_font(whole, str(path), options)
