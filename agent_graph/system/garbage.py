"""How often the interpreter looks for circles of garbage."""

from __future__ import annotations

import gc
from typing import Final

PYTHONS_OWN: Final = (700, 2_000)
"""New objects after which CPython looks for garbage: up to 3.12, and since."""


def seldom_collect() -> None:
    """Have the interpreter look for circles of garbage less often.

    What a run makes lives as long as the run; to look after every few hundred new objects took a tenth of each step. A
    program that has a setting of its own keeps it.
    """
    if gc.get_threshold()[0] in PYTHONS_OWN:
        gc.set_threshold(20_000, 20, 50)
