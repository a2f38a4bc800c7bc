"""Takes secrets out of a text that comes in pieces: what may still become one is held back; shows no more than that.

All pieces together are what `Redactor.text` makes of the whole text, wherever it was cut.
"""

from __future__ import annotations

import re
from typing import Final

from agent_graph.core.redact import Redactor
from agent_graph.core.secret_shapes import unfinished
from agent_graph.core.secret_span import BACK

_BREAK: Final = re.compile(r"[^!-~]")


class Stream:
    """One text on its way."""

    __slots__ = ("_looked", "_new", "_redactor", "_shown", "_window")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._window = ""
        """The end of what was shown, and all that was not."""
        self._shown = 0
        """How much of the window was."""
        self._new: list[str] = []
        self._looked = 0
        """How much was held back when it was looked at last."""

    def piece(self, text: str) -> str:
        """What may be shown now that `text` has come; often nothing."""
        self._new.append(text)
        if _BREAK.search(text) is None:
            return ""  # within a word: it is held back anyhow
        waiting = len(self._window) - self._shown + sum(map(len, self._new))
        if waiting < self._looked + self._looked // 8:
            return ""  # long, and still the same: looking at it at every piece would take ever longer
        return self._show(last=False)

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        return self._show(last=True)

    def _show(self, *, last: bool) -> str:
        window = self._window + "".join(self._new)
        self._new.clear()
        found = self._redactor.spans(window)
        end = len(window)
        if not last:
            end = min(unfinished(window, found), self._redactor.begun(window))
            if self._redactor.patterns:
                end = min(end, window.rfind("\n") + 1)  # they are matched within a line
            end = max(end, self._shown)
        shown = self._redactor.cut(window, found, self._shown, end)
        kept = max(0, end - BACK)
        self._window, self._shown = window[kept:], end - kept
        self._looked = len(window) - end
        return shown
