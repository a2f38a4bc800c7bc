"""Shows a run while it goes: a line for everything that happens and, on a terminal, the models' words as they come."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agent_graph.cli.output import one_line, plain, say
from agent_graph.core.jsonvalue import JsonObject

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

KEPT: Final = 2_000
"""Characters of streaming text that are kept for a node."""
ROWS: Final = 8
"""Lines of streaming text, shared by the nodes that run."""


def now_ms() -> int:
    """The time of this machine, as events have it."""
    return time.time_ns() // 1_000_000


def view(*, since_ms: int = 0) -> View:
    """The view that fits where stderr goes; what happened before `since_ms` is not told again."""
    kind = TerminalView if sys.stderr is not None and sys.stderr.isatty() else View
    return kind(since_ms=since_ms)


class View:
    """Lines on stderr."""

    def __init__(self, *, since_ms: int = 0) -> None:
        self._since_ms = since_ms
        self._first_ms: int | None = None
        self._started_ms: dict[str, int] = {}
        self._tokens: dict[str, int] = {}

    def show(self, item: JsonObject) -> None:
        """An item of `tools.live.follow`."""
        if "seq" not in item:
            return
        at_ms, firing = _int(item.get("at_ms")), str(item.get("firing", ""))
        if self._first_ms is None and at_ms >= self._since_ms:
            self._first_ms = at_ms
        if item["type"] == "node_started":
            self._started_ms[firing] = at_ms
        if item["type"] == "model_answered":
            answer: Any = item.get("answer", {})
            self._tokens[firing] = _int(answer.get("completion_tokens"))
        line = told(item, took_ms=at_ms - self._started_ms.get(firing, at_ms), tokens=self._tokens.get(firing, 0))
        if line and self._first_ms is not None:
            self.line(f"{(at_ms - self._first_ms) / 1000:7.1f} s  {line}")

    def line(self, text: str) -> None:
        """A line that stays."""
        say(text)

    def stop(self) -> None:
        """Leave the screen to others; the next `show` takes it again."""


_SILENT: Final = frozenset(
    {"node_finished", "node_failed", "node_retried", "firing_cancelled", "approval_opened", "frames_opened"}
)
"""After these a node says nothing more for now."""


class TerminalView(View):
    """The lines, and below them what the models are saying right now."""

    def __init__(self, *, since_ms: int = 0) -> None:
        super().__init__(since_ms=since_ms)
        self._live: Live | None = None
        self._saying: dict[str, str] = {}

    def show(self, item: JsonObject) -> None:
        firing = str(item.get("firing", ""))
        match item["type"]:
            case "node_started":
                self._saying[firing] = ""
            case "model_delta":
                self._saying[firing] = (self._saying.get(firing, "") + plain(str(item["text"])))[-KEPT:]
            case (
                "node_finished"
                | "node_failed"
                | "node_retried"
                | "firing_cancelled"
                | "approval_opened"
                | "frames_opened"
            ):
                self._saying.pop(firing, None)
        super().show(item)
        self._draw()

    def line(self, text: str) -> None:
        if self._live is None:
            say(text)
        else:
            self._live.console.print(_text(plain(text)), soft_wrap=True)

    def stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _draw(self) -> None:
        if not self._saying:
            self.stop()
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True), transient=True, auto_refresh=True, refresh_per_second=8,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self._live.start()
        self._live.update(_text(saying(self._saying, width=shutil.get_terminal_size().columns - 1), style="dim"))


def saying(texts: dict[str, str], *, width: int) -> str:
    """The last lines of what each node has said, as many as there is room for."""
    each = max(1, ROWS // max(1, len(texts)))
    rows: list[str] = []
    for firing, text in list(texts.items())[:ROWS]:
        name = f"{one_line(_node(firing), 30)}: "
        room = max(10, width - len(name))
        words = [one_line(line) for line in text.splitlines() if line.strip()] or ["..."]
        wrapped = [line[at : at + room] for line in words for at in range(0, len(line), room)][-each:]
        rows += [(name if number == 0 else " " * len(name)) + line for number, line in enumerate(wrapped)]
    return "\n".join(rows)


def _text(text: str, *, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, no_wrap=not style, overflow="ignore")


# -- one line for an event -----------------------------------------------------------------------------------------


def told(item: JsonObject, *, took_ms: int = 0, tokens: int = 0) -> str:
    """What an event means to somebody who watches; "" for those that say nothing new."""
    tell = _TOLD.get(str(item["type"]), "")
    node = one_line(_node(str(item.get("firing", ""))), 60)
    words = tell if isinstance(tell, str) else tell(item)
    if not words:
        return ""
    if item["type"] == "node_finished":
        words += f" after {took_ms / 1000:.1f} s" if took_ms >= 100 or tokens else ""
        words += f", {tokens} tokens" if tokens else ""
    return f"{node}  {words}" if node else words


def _node(firing: str) -> str:
    """``draft#1`` is shown as ``draft``, a further round as ``draft (2)``."""
    name, _, nth = firing.rpartition("#")
    return firing if not name else name if nth == "1" else f"{name} ({nth})"


def _error(item: JsonObject) -> str:
    error: Any = item.get("error") or {}
    return f"{error.get('code', '')}: {error.get('message', '')}" if error else ""


def _words(text: object) -> str:
    return one_line(str(text), 400)


def _decided(item: JsonObject) -> str:
    note = f": {_words(item['note'])}" if item.get("note") else ""
    return f"decided: {item['decision']} by {_words(item['by'])} ({_words(item['via'])}){note}"


def _tool(item: JsonObject) -> str:
    return f"{item['connection']}/{item['tool']}" if item.get("connection") else f"{item['name']}, which there is not"


def _onward(item: JsonObject) -> str:
    targets: Any = item.get("targets")
    return "" if targets is None else f"; goes on to {', '.join(map(str, targets))}"


def _route(item: JsonObject) -> str:
    targets: Any = item.get("targets") or ()
    return f"goes {_words(item['transition'])} -> {_words(', '.join(map(str, targets)))}"


def _compared(item: JsonObject) -> str:
    witnesses, problems = item.get("witnesses"), item.get("problems")
    if isinstance(problems, list) and problems and isinstance(problems[0], dict):
        return f"cites what does not stand there: {problems[0].get('message')}"
    return f"cites {len(witnesses) if isinstance(witnesses, list) else 0} source(s), and the words stand there"


_TOLD: Final[dict[str, str | Callable[[JsonObject], str]]] = {
    "node_started": lambda item: (
        "started"
        + (f" again (attempt {item['attempt']})" if _int(item.get("attempt")) > 1 else "")
        + (f" with {_words(item['model'])}" if item.get("model") else "")
    ),
    "cache_hit": lambda item: _words(f"takes the answer of {item['run_id']}"),
    "tool_called": lambda item: _words(f"calls {_tool(item)}"),
    "tool_answered": lambda item: (
        _words(f"is told: {item['text']}")
        if not item.get("failed")
        else _words(f"is told that the call failed ({item['code']}): {item['text']}")
    ),
    "evidence_checked": lambda item: _words(_compared(item)),
    "node_retried": lambda item: _words(
        f"tries again in {_int(item['delay_ms']) / 1000:.1f} s"
        + (f" with {item['model']}" if item.get("model") else "")
        + f": {_error(item)}"
    ),
    "node_finished": "done",
    "frames_opened": lambda item: (
        "runs what stands inside" if _int(item.get("count", 1)) == 1 else f"runs once for each of {item['count']}"
    ),
    "node_failed": lambda item: _words(f"failed, {_error(item)}" + _onward(item)),
    "route_taken": _route,
    "loop_exhausted": lambda item: f"has gone round {item['count']} times, the most it may",
    "firing_cancelled": lambda item: _words(f"cancelled: {item['reason']}"),
    "approval_opened": "waits for a decision",
    "timer_set": "waits for the clock",
    "signal_awaited": lambda item: _words(f"waits for a message {item['name']}"),
    "signal_received": lambda item: _words(f"a message {item['name']} came"),
    "approval_decided": _decided,
    "approval_reminded": "is not decided yet, and its time is nearly over",
    "approval_expired": "was not decided in time",
    "approval_withdrawn": "asks no longer",
    "write_conflict": lambda item: _words(f"two branches wrote {item['key']}; {item['winner']} wins"),
    "run_interrupted": lambda item: _words(f"interrupted: {item['reason']}"),
    "run_resumed": "goes on",
    "run_cancel_requested": lambda item: _words(f"to be cancelled: {item['reason']}"),
    "run_cancelled": "cancelled",
    "warning": lambda item: _words(f"{item['code']}: {item['message']}"),
}


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
