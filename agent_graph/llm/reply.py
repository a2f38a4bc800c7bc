"""Gathers the pieces of one reply within a bound, and notices when a JSON answer is over though the host goes on."""

from __future__ import annotations

from agent_graph.core import model_options
from agent_graph.core.effects import CallModel
from agent_graph.core.jsonvalue import JsonObject, JsonValue, size
from agent_graph.core.reply import CLOSE, OPEN
from agent_graph.errors import ModelBadReply
from agent_graph.llm.base import DeltaKind, OnDelta

CALL_BYTES = 64
"""What a tool call is counted for beside its arguments and its name."""
BLANKS = " \t\r\n"
ENOUGH_BLANKS = 64
"""Blanks after a complete value from which a host is taken to print them for ever; more than any layout needs."""


class JsonEnd:
    """Follows a text piece by piece and tells when its top-level object or array is closed.

    Each character is looked at once. A text that does not start with ``{`` or ``[``, or goes on after the value with
    anything but blanks, is never over.
    """

    __slots__ = ("_depth", "_escaped", "_in_string", "_off", "blanks", "complete")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._off = False
        self.complete = False
        self.blanks = 0
        """Blanks since the value was closed."""

    @property
    def over(self) -> bool:
        return self.complete and self.blanks >= ENOUGH_BLANKS

    def feed(self, piece: str) -> None:
        for character in piece:
            if self._off:
                return
            if self.complete:
                self._after(character)
            elif self._in_string:
                self._inside_string(character)
            else:
                self._outside_string(character)

    def _after(self, character: str) -> None:
        if character in BLANKS:
            self.blanks += 1
        else:
            self._off, self.complete = True, False

    def _inside_string(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            self._in_string = False

    def _outside_string(self, character: str) -> None:
        if character in "{[":
            self._depth += 1
        elif character in BLANKS:
            return
        elif self._depth == 0:
            self._off = True
        elif character == '"':
            self._in_string = True
        elif character in "}]":
            self._depth -= 1
            self.complete = self._depth == 0


class InlineThinking:
    """Tells the thinking that a model writes into its text, in ``<think>`` blocks before anything else, apart from it.

    It is for who watches: the text of the answer stays as it came, and `core.reply` takes it apart.
    """

    __slots__ = ("_held", "_state")

    def __init__(self) -> None:
        self._state = "before"  # then "thinking", and in the end "text"
        self._held = ""
        """What may be a part of a tag."""

    def feed(self, piece: str) -> list[tuple[DeltaKind, str]]:
        if self._state == "text":
            return [("text", piece)]
        told: list[tuple[DeltaKind, str]] = []
        held, self._held = self._held + piece, ""
        while held and self._state != "text":
            held = self._before(held) if self._state == "before" else self._thinking(held, told)
        if held:
            told.append(("text", held))
        return told

    def _before(self, held: str) -> str:
        start = held.lstrip()
        if start.startswith(OPEN):
            self._state = "thinking"
            return start[len(OPEN) :]
        if OPEN.startswith(start):
            self._held = held
            return ""
        self._state = "text"
        return held

    def _thinking(self, held: str, told: list[tuple[DeltaKind, str]]) -> str:
        thought, closed, rest = held.partition(CLOSE)
        if closed:
            self._state = "before"
        else:  # the end of it may be the beginning of the tag
            kept = next((n for n in range(len(CLOSE) - 1, 0, -1) if held.endswith(CLOSE[:n])), 0)
            thought, self._held = held[: len(held) - kept], held[len(held) - kept :]
        if thought:
            told.append(("thinking", thought))
        return rest


class Reply:
    """Text and thinking of one reply; `on_delta` is told what is kept, with thinking written into the text apart."""

    def __init__(self, call: CallModel, on_delta: OnDelta, *, max_bytes: int, who: str) -> None:
        self._parts: dict[DeltaKind, list[str]] = {"text": [], "thinking": []}
        self._on_delta = on_delta
        self._left = max_bytes
        self._max_bytes = max_bytes
        self._who = who
        self._end = JsonEnd() if call.format is not None else None
        self._tool_calls: list[JsonObject] = []
        self._inline = InlineThinking()

    def add(self, kind: DeltaKind, piece: str) -> None:
        """Keep `piece`. Raises `ModelBadReply` (details.reason "too_large") past the bound."""
        if not piece:
            return
        piece = whole_characters(piece)
        if kind == "text" and self._end is not None:
            self._end.feed(piece)
        self._spend(len(piece.encode()))
        self._parts[kind].append(piece)
        for told, part in self._inline.feed(piece) if kind == "text" else [(kind, piece)]:
            self._on_delta(told, part)

    def add_tool_call(self, *, call_id: str, name: str, arguments: JsonValue) -> None:
        """Keep one call the model wants made. Raises `ModelBadReply` past the bound, and for what is no JSON."""
        try:
            weight = size(arguments)
        except ValueError as error:  # NaN, half a surrogate pair
            message = f"{self._who} wants a tool called with what is no JSON value"
            raise ModelBadReply(message, reason="not_json", tool=name[:64]) from error
        self._spend(weight + len(name) + CALL_BYTES)
        self._tool_calls.append(
            {"id": whole_characters(call_id), "name": whole_characters(name), "arguments": arguments}
        )  # fmt: skip

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ModelBadReply(
                f"{self._who} answered with more than {self._max_bytes} bytes",
                reason="too_large",
                max_bytes=self._max_bytes,
            )

    @property
    def over(self) -> bool:
        """Whether the JSON asked for is complete and only blanks keep coming."""
        return self._end is not None and self._end.over

    @property
    def text(self) -> str:
        return "".join(self._parts["text"])

    @property
    def thinking(self) -> str:
        return "".join(self._parts["thinking"])

    @property
    def tool_calls(self) -> tuple[JsonObject, ...]:
        """[{id, name, arguments}], as `effects.ModelAnswer` has them."""
        return tuple(self._tool_calls)


def whole_characters(text: str) -> str:
    """`text` with halves of surrogate pairs joined, or replaced by U+FFFD where the other half is missing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def option_warnings(options: JsonObject) -> tuple[JsonObject, ...]:
    """One warning for each option no host acts on: hosts pass over a typing mistake in silence."""
    return tuple(
        {"code": "OPTION_UNKNOWN", "message": f'the option "{name}" is not known and is ignored by the model host'}
        for name in options
        if name not in model_options.KNOWN
    )


WHITESPACE_LOOP: JsonObject = {
    "code": "WHITESPACE_LOOP",
    "message": "the JSON was complete and only blanks followed; the call was ended there",
}
