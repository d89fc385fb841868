"""The experiments, a package each; the number in a name is its place on the page.

`cells.py` says what is computed, `figures.py` what is shown of it, `verdicts.py` what the numbers bear out;
`__init__.py` tells the story and offers `cells`, `findings` and `CHOICES`. Values that several of these read
are in `readings.py`, and what several experiments need is in `shared/`.
"""
