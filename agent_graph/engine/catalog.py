"""Graphs by id and version: compiled when they come in, loaded without compiling when a run needs them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from agent_graph.core.classes import dataclass
from agent_graph.core.compile import Compiled, Level, compile_graph, load_graph
from agent_graph.core.graph import Graph
from agent_graph.core.issues import Issue
from agent_graph.core.jsonvalue import JsonValue
from agent_graph.core.limits import Limits
from agent_graph.core.nesting import named_in
from agent_graph.core.redact import PLAIN, Redactor
from agent_graph.core.spec_secrets import without_secrets
from agent_graph.engine.clock import Clock
from agent_graph.engine.templates import Library
from agent_graph.errors import GraphNotFound, GraphVersionNotFound, SpecInvalid
from agent_graph.store.base import Answered, GraphRow, Store

CACHED = 128
LARGE = 250
"""JSON values of a spec beyond which it is checked in a thread: with its repairs that takes more than a few ms."""
COMPARED = 200
"""Stored names that an unknown one is compared with."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A spec the checker has no error for, and what it said all the same."""

    graph: Graph
    issues: tuple[Issue, ...]
    row: GraphRow


def is_large(spec: JsonValue) -> bool:
    """Whether it holds more values than are checked at once; looks no further than that."""
    left, todo = LARGE, [spec]
    while todo and left >= 0:
        part = todo.pop()
        inner = [*part.values()] if isinstance(part, dict) else part if isinstance(part, list) else []
        left -= len(inner)
        todo += inner if left >= 0 else []
    return left < 0


class Catalog:
    """The graphs of one data folder."""

    def __init__(
        self, store: Store, *, clock: Clock, limits: Limits, templates: Library | None = None,
        redactor: Redactor = PLAIN,
    ) -> None:  # fmt: skip
        self.templates = templates or Library()
        self._redactor = redactor
        self._store = store
        self._clock = clock
        self._limits = limits
        self._cache: OrderedDict[tuple[str, str], Graph] = OrderedDict()
        self.listeners: tuple[Callable[[str], None], ...] = ()
        """Who is told of every change of the list."""

    async def check(self, spec: JsonValue) -> Checked:
        """Compile a spec. Raises `SpecInvalid` with every issue in ``details.issues``; nothing is stored."""
        compiled = await self.compiled(spec)
        if compiled.graph is None:
            errors = [issue for issue in compiled.issues if issue.severity == "error"]
            first = f": {errors[0].message}" if errors else ""
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            issues = [issue.to_json() for issue in compiled.issues]
            raise SpecInvalid(f"the graph has {len(errors)} error(s){first}{more}", issues=issues)
        graph = compiled.graph
        description = graph.spec.get("description")
        row = GraphRow(
            graph_id=graph.name, graph_version=graph.version,
            description=description if isinstance(description, str) else "", node_count=len(graph.nodes),
            edge_count=sum(edge.declared for edge in graph.topology.edges), updated_at_ms=self._clock.now_ms(),
            spec=graph.spec, compiled=compiled.compiled,
        )  # fmt: skip
        return Checked(graph, compiled.issues, row)

    async def compiled(self, spec: JsonValue, *, level: Level = "semantic") -> Compiled:
        """What the checker makes of a spec; a large one beside the event loop, so that runs go on meanwhile.

        A secret in it is taken out first, and `SECRET_IN_SPEC` says where it stood.
        """
        stored = await self._stored(spec)
        if is_large(spec):
            return await asyncio.to_thread(self._compiled, spec, stored, level)
        return self._compiled(spec, stored, level)

    def _compiled(self, spec: JsonValue, stored: dict[tuple[str, str], Graph], level: Level) -> Compiled:
        clean, secrets = without_secrets(self._redactor, spec)
        compiled = compile_graph(clean, limits=self._limits, stored=stored, level=level)
        return replace(compiled, issues=(*compiled.issues, *secrets)) if secrets else compiled

    async def put(
        self, checked: Checked, *, overwrite: bool, expected_version: str | None, answered: Answered | None = None,
        template_id: str = "",
    ) -> bool:  # fmt: skip
        """Make it the current version of its name; False when it already was. `template_id` is what it was made of.
        Raises `GraphVersionConflict`."""
        origin = (template_id, self.templates.get(template_id).version) if template_id else None
        row = replace(checked.row, origin=origin)
        stored = await self._store.graphs.put(
            row, overwrite=overwrite, expected_version=expected_version, answered=answered
        )
        if stored:
            self._tell(checked.row.graph_id)
        return stored

    async def delete(self, graph_id: str, answered: Answered | None = None) -> None:
        """Hide it from the list; its versions stay. Raises `GraphNotFound`, `GraphInUse`."""
        await self._store.graphs.delete(graph_id, answered)
        self._tell(graph_id)

    def listen(self, hear: Callable[[str], None]) -> Callable[[], None]:
        """Have `hear`, which must not raise, told the name of every graph that gets another version or is hidden, until
        what is returned is called."""
        self.listeners = (*self.listeners, hear)

        def stop() -> None:
            self.listeners = tuple(other for other in self.listeners if other is not hear)

        return stop

    def _tell(self, graph_id: str) -> None:
        for hear in self.listeners:
            hear(graph_id)

    async def is_current(self, checked: Checked) -> bool:
        """Whether it is the version its name holds already."""
        try:
            return (await self._store.graphs.get(checked.row.graph_id)).graph_version == checked.row.graph_version
        except GraphNotFound:
            return False

    async def get(self, graph_id: str, graph_version: str | None = None) -> Graph:
        """The compiled graph. Raises `GraphNotFound` or `GraphVersionNotFound`."""
        if graph_version is not None and (graph_id, graph_version) in self._cache:
            self._cache.move_to_end((graph_id, graph_version))
            return self._cache[graph_id, graph_version]
        try:
            row = await self._store.graphs.get(graph_id, graph_version)
        except GraphNotFound as error:
            raise await self._unknown(graph_id) from error
        key = (row.graph_id, row.graph_version)
        if key not in self._cache:
            inner: dict[str, str] = dict(row.compiled.get("subgraphs") or {})  # type: ignore[arg-type]  # as compiled
            graphs = {version: await self.get(name, version) for version, name in inner.items()}
            self._cache[key] = load_graph(row.spec, row.graph_version, row.compiled, subgraphs=graphs)
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]

    async def _stored(self, spec: JsonValue) -> dict[tuple[str, str], Graph]:
        """Those of the graphs a spec names that there are."""
        found = {}
        for name, version in named_in(spec):
            with contextlib.suppress(GraphNotFound, GraphVersionNotFound):
                found[name, version] = await self.get(name, version or None)
        return found

    async def _unknown(self, graph_id: str) -> GraphNotFound:
        """With the name that was probably meant, or how a graph gets its name."""
        from difflib import get_close_matches  # here, not above: a run that goes on never needs it

        rows, _ = await self._store.graphs.list(limit=COMPARED)
        close = get_close_matches(graph_id, [row.graph_id for row in rows], n=1)
        if graph_id in self.templates.all():
            hint = f"that is a template: make a graph of it first (graph_create with template {{id: {graph_id!r}}})"
        elif close:
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = "graph_create stores one, graph_template_instantiate only with register: true"
        return GraphNotFound(f"there is no graph {graph_id!r}; {hint}", graph_id=graph_id)
