"""The experiments, a package each; the number in a name is its place on the page.

`cells.py` names what is computed, and computes what takes seconds; `findings.py` tells the story and makes
figures, tables and verdicts of the values. What takes long is computed by a module of its own: the value of a
cell is kept until a module that it depends on changes, and the settings in `cells.py` change more often. What
several experiments need is in `shared/`.
"""
