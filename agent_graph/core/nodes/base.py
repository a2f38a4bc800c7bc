"""What a node type is: a frozen config, what it may touch and choose, and one pure step.

The functions at the end say once, for all types, what a path, a template and an output key mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

from agent_graph.core import statepath
from agent_graph.core.bounds import Ge, Le, Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import Answer, Done, Effect, MaybeJson, Missing, Path, Write
from agent_graph.core.graph import Node
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.ops import reducers
from agent_graph.core.ops.prompt import Template, parse
from agent_graph.errors import NodeFailure


class Values(Protocol):
    """What one firing sees: exactly what its causal past wrote."""

    @property
    def current(self) -> JsonValue:
        """The current value (``{input}`` without an `input_key`)."""
        ...

    @property
    def run_input(self) -> JsonValue: ...

    @property
    def limits(self) -> Limits:
        """The limits of the run; a step applies no others."""
        ...

    @property
    def reentered(self) -> bool:
        """A token taken came from inside the body of this loop node."""
        ...

    def read(self, path: str) -> MaybeJson:
        """The value at a state path (dotted or JSON Pointer); ``outputs.<node>``, ``errors.<node>``, ``loops.<node>``
        read the engine's own books. An existing flat key that contains dots is found first."""
        ...

    def resolve(self, path: str) -> Path:
        """The segments a write to `path` goes to; an existing flat key that contains dots is one segment."""
        ...

    def join_input(self, name: str) -> MaybeJson:
        """A join's input: a node id means that node's output, else a path. MISSING too when it is stale
        (written before this join's previous firing, engine.md 3) and the join does not allow that."""
        ...

    def reducer(self, key: str) -> str:
        """The reducer of a top-level key, "" when it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A node (or END) a config can choose; `pointer` leads to it from the config. Whether there is such a node, and
    that END_RUN is not available yet, is said by `core.wiring`."""

    id: str
    pointer: str


@dataclass(frozen=True, slots=True)
class Read:
    """A state path a config reads; `optional` reads may find nothing."""

    path: str
    pointer: str
    optional: bool = False


Milliseconds = Annotated[int, Ge(1), Le(366 * 86_400_000)]
"""A span of time; a year at most."""


FailureClass = Literal["timeout", "unreachable", "overloaded", "server_error", "bad_reply"]
"""The classes of failures that can pass: only these are retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call that fails in a way that can pass is made again, and after which delays."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    max_attempts: Annotated[int, Ge(1), Le(100)] = 3
    """Attempts of each model, the first one included."""
    initial_delay_ms: Annotated[int, Ge(0), Le(86_400_000)] = 250
    """The longest delay before the second attempt."""
    backoff_factor: Annotated[float, Ge(1), Le(100)] = 2
    """What the longest delay is multiplied with after every attempt."""
    max_delay_ms: Annotated[int, Ge(0), Le(86_400_000)] = 5_000
    """What the longest delay grows to at most; a host's `Retry-After` may ask for more, up to five minutes."""
    jitter: bool = True
    """The delay is drawn between nothing and the longest; else it is the longest."""
    on: list[FailureClass] = field(default_factory=list)
    """The classes that are retried; none named = all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """The fields every node type's ``config`` has. Field names and defaults are those of the spec.

    Validated by ``TypeAdapter(Config).validate_json(..., strict=True)``: "3" and true are no integers.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    output_key: str = ""
    """State path of what the node makes; "" = the current value, or nothing where a type makes nothing."""
    input_key: str = ""
    """State path of ``{input}``; "" = the current value."""
    timeout_ms: Milliseconds | None = 120_000
    """Bounds one attempt; a pure step always keeps it."""
    retry: Retry | None = None
    """How a call that fails is made again; left out, three attempts."""
    on_error: Literal["fail", "continue"] | Annotated[dict[Literal["goto"], list[str]], Len(1)] = "fail"
    """What a failure leads to: the run fails; or the branch goes on along the out-edges; or along `goto`."""
    requirements: list[str] = field(default_factory=list)
    """Labels such as "REQ-7"; no part of behaviour."""
    executor: Literal["server", "caller"] = "server"
    """Who performs it."""
    merge: Literal["round", "each"] = "round"
    """When it fires: once for the tokens of a round, or for each token by itself."""
    mutex: Annotated[str, Len(0, 64)] = ""
    """At most one firing of all nodes that give this name runs at a time; "" = none."""

    def __post_init__(self) -> None:
        given: Any = self.retry
        if isinstance(given, dict):  # a stored spec is read without pydantic
            object.__setattr__(self, "retry", Retry(**given))


UNAVAILABLE_EVERYWHERE: Final = {
    "executor": 'nodes are performed by the server; "caller" is not available yet',
}
"""The common fields nothing acts on yet."""


class NodeForm(Protocol):
    """What a module of `core.nodes` says of its type without running it. Everything here is pure.

    A type that acts on the world also has ``acts(config)``, that it may change something there, and
    ``repeatable(config)``, that the call may be made again.
    """

    @property
    def Config(self) -> type[NodeConfig]:  # noqa: N802  (a module's class)
        """Frozen slotted dataclass: the fields of ``config`` with types and defaults; validated by `core.spec`."""
        ...

    @property
    def CHOOSES(self) -> bool:  # noqa: N802  (a module's constant)
        """Its targets replace its out-edges (router, loop, static parallel)."""
        ...

    @property
    def UNAVAILABLE(self) -> dict[str, str]:  # noqa: N802  (a module's constant)
        """Known fields nothing acts on yet, with the reason; a value other than the default is refused."""
        ...

    def check(self, node_id: str, config: Any, limits: Limits = DEFAULTS, /) -> Sequence[Issue]:
        """What is wrong with this config alone; pointers are relative to the config. `limits` bound its patterns."""
        ...

    def targets(self, config: Any, /) -> Sequence[Target]:
        """What it can choose, in the order of engine.md 2 (rules, default; branches; entry, exit; on_reject, ...)."""
        ...

    def reads(self, config: Any, /) -> Sequence[Read]: ...

    def writes(self, node_id: str, config: Any, /) -> Sequence[str]:
        """State paths it can write, as written in the config."""
        ...

    def writes_current(self, config: Any, /) -> bool:
        """It sets the current value."""
        ...


class NodeType(NodeForm, Protocol):
    """A module of `core.nodes` that runs too."""

    def prepare(self, config: Any, /) -> Any:
        """Patterns, templates and tables made once; called only when `check` found no error."""
        ...

    def step(self, node: Node, values: Values, answers: Sequence[Answer], /) -> Done | Effect:
        """Raises `NodeFailure` when the firing fails."""
        ...


def error_targets(config: NodeConfig) -> list[Target]:
    """Where a failure leads, after all that the type itself can choose (engine.md 2)."""
    goto = config.on_error["goto"] if isinstance(config.on_error, dict) else []
    return [Target(target, pointer("on_error", "goto", place)) for place, target in enumerate(goto)]


CURRENT: Final = "__input__"
"""The older name of the current value, where a path is read."""


def value_at(values: Values, path: str) -> MaybeJson:
    """What a config's path reads; "" is the current value."""
    head, dot, rest = path.partition(".")
    if head not in ("", CURRENT):
        return values.read(path)
    return statepath.read(values.current, rest) if dot else values.current


def placeholder_values(values: Values, input_key: str) -> Callable[[str], MaybeJson]:
    """What a template's placeholders stand for: ``{input...}``, ``{run_input...}``, else a state path."""

    def find(path: str) -> MaybeJson:
        head, dot, rest = path.partition(".")
        if head not in ("input", "run_input"):
            return values.read(path)
        found = value_at(values, input_key) if head == "input" else values.run_input
        return found if isinstance(found, Missing) or not dot else statepath.read(found, rest)

    return find


def rendered(template: Template, values: Values, input_key: str) -> str:
    """The text of a template; `NodeFailure` PROMPT_VALUE_MISSING, or VALUE_TOO_LARGE beyond the prompt limit."""
    limit = values.limits.prompt_bytes
    return bounded_prompt(template.render(placeholder_values(values, input_key), max_bytes=limit), limit=limit)


def bounded_prompt(text: str, *, limit: int) -> str:
    """`text` itself; `NodeFailure` VALUE_TOO_LARGE when it is beyond `limit` bytes."""
    if len(text) > limit or len(text.encode()) > limit:
        raise NodeFailure("VALUE_TOO_LARGE", f"the prompt is larger than {limit} bytes", limit=limit)
    return text


def template_reads(template: Template, at: str, *, input_key: str) -> list[Read]:
    """The state paths a template at pointer `at` reads."""
    reads = []
    for placeholder in template.placeholders:
        head = placeholder.path.partition(".")[0]
        if head == "input":
            reads += path_read(input_key, "/input_key", optional=placeholder.optional)
        elif head != "run_input":
            reads.append(Read(placeholder.path, at, placeholder.optional))
    return list(dict.fromkeys(reads))


def value_reads(value: Any, at: str, *, input_key: str) -> list[Read]:
    """The state paths that the templates in a JSON value at pointer `at` read."""
    found: list[Read] = []
    todo: list[tuple[Any, str]] = [(value, at)]
    while todo:
        part, where = todo.pop()
        if isinstance(part, str):
            found += template_reads(parse(part), where, input_key=input_key)
        elif isinstance(part, dict):
            todo += [(inner, where + pointer(name)) for name, inner in part.items()]
        elif isinstance(part, list):
            todo += [(inner, f"{where}/{place}") for place, inner in enumerate(part)]
    return found


def path_read(path: str, at: str, *, optional: bool = False) -> list[Read]:
    """The read of a config's path; none when it is the current value."""
    return [] if path.partition(".")[0] in ("", CURRENT) else [Read(path, at, optional)]


def contribution(values: Values, path: str, value: JsonValue) -> Write:
    """The write of `value` to `path`; `NodeFailure` TRANSFORM_INVALID when a reducer there cannot take it."""
    place = values.resolve(path)
    return reducers.contribution(values.reducer(place[0]), place, value)


def path_issues(node_id: str, paths: Iterable[tuple[str, str]]) -> list[Issue]:
    """STATE_PATH_INVALID for every (path, pointer) that is no path; "" is none given."""
    issues = []
    for path, at in paths:
        try:
            if path:
                statepath.split(path)
        except ValueError as error:
            issues.append(Issue("STATE_PATH_INVALID", str(error), pointer=at, node_id=node_id))
    return issues
