"""The table of resources: each address is a tool with arguments, so that the two cannot say different things.

What is part of the program itself (the schema, the pages of the documentation) has no tool and is handed out as it is.
A name in braces stands for a part of the address, in `uri` and in `arguments` alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final
from urllib.parse import unquote

from agent_graph import __version__
from agent_graph.core.classes import dataclass
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.spec import json_schema
from agent_graph.mcp_server.resources import pages, views
from agent_graph.mcp_server.resources.views import Parts

LONGEST: Final = 2_000
"""Characters of an address."""
HOUR_MS: Final = 3_600_000
_NAME: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Read:
    """A tool and its arguments; `rows` names the member of its answer that is a list of pages."""

    tool: str
    arguments: Mapping[str, str | int | bool] = field(default_factory=dict)
    rows: str = ""

    def given(self, parts: Parts) -> JsonObject:
        """The arguments with the parts of the address in their places; a part is only ever a whole value."""
        return {
            name: parts[found[1]] if isinstance(value, str) and (found := _NAME.fullmatch(value)) else value
            for name, value in self.arguments.items()
        }


@dataclass(frozen=True, slots=True)
class Shipped:
    """Something that comes with the program; `give` answers None where there is nothing of that name."""

    give: Callable[[Parts], JsonObject | None]


@dataclass(frozen=True, slots=True)
class Resource:
    """One row. `seen_from`, `claim`, `limits`, `rests_on` and `unknown` are what a statement says of itself."""

    uri: str
    name: str
    title: str
    description: str
    source: Read | Shipped
    claim: str
    seen_from: str
    rests_on: str
    unknown: tuple[str, ...]
    limits: tuple[str, ...] = ()
    view: Callable[[JsonObject, Parts], JsonObject | None] = views.as_it_is
    """What of the tool's answer is shown; None where the answer has nothing of that name."""
    beside: Mapping[str, Read] = field(default_factory=dict)
    """Members read by another tool and kept apart; one that is refused is left out, and the statement says so."""
    fresh_ms: int = 0
    """How long a client may keep it; 0 where it can change."""
    public: bool = False
    """The same for everybody."""

    def match(self, uri: str) -> dict[str, str] | None:
        """The parts of `uri`, percent-encoding undone; None when it is not of this row."""
        found = _pattern(self.uri).fullmatch(uri) if len(uri) <= LONGEST else None
        return None if found is None else {name: unquote(part) for name, part in found.groupdict().items()}

    @property
    def parts(self) -> tuple[str, ...]:
        """The names in braces."""
        return tuple(_NAME.findall(self.uri))


def _pattern(uri: str) -> re.Pattern[str]:
    """A page lies in a folder, so only its name may hold a stroke."""
    literal = re.split(r"\{\w+\}", uri)
    pieces = [re.escape(literal[0])]
    for name, text in zip(_NAME.findall(uri), literal[1:], strict=True):
        pieces += [rf"(?P<{name}>[^?#]+)" if name == "page" else rf"(?P<{name}>[^/?#]+)", re.escape(text)]
    return re.compile("".join(pieces))


def find(uri: str) -> tuple[Resource, dict[str, str]] | None:
    """The row of an address and its parts."""
    for row in TABLE:
        if (parts := row.match(uri)) is not None:
            return row, parts
    return None


PROGRAM: Final = f"agent-graph {__version__}"
_SAID_BY_MODELS: Final = "whether what models and people said is true"

TABLE: Final = (
    Resource(
        "graph://graphs", "graphs", "Stored graphs", "Every stored graph: id, version, size, what it is for.",
        Read("graph_list", rows="graphs"), view=views.graph_index,
        claim="These graphs are stored under these versions.",
        seen_from="the store, when it was read", rests_on="the list of current versions",
        unknown=("what the graphs do: see graph://graphs/{id}", "whether anybody runs them"),
        limits=("current versions only", "graphs that were deleted are left out"),
    ),
    Resource(
        "graph://graphs/{id}", "graph", "A graph",
        "The current version of a graph: nodes, all legal transitions, labels, facts, drawing, its versions.",
        Read("graph_inspect", {"graph_id": "{id}"}), view=views.graph_with_versions,
        claim="A run of this version can go along these transitions and along no others.",
        seen_from="the version that was current when it was read",
        rests_on="the stored spec of that version, compiled; secrets in it are masked",
        unknown=("which ways runs took: see observed in graph://runs/{run_id}", "what models will answer",
                 "the quality of its prompts"),
        limits=("facts about numbers of calls are bounds, no forecasts",),
    ),
    Resource(
        "graph://graphs/{id}/versions/{digest}", "graph_version", "A version of a graph",
        "One stored version of a graph; it never changes, not by a byte.",
        Read("graph_inspect", {"graph_id": "{id}", "graph_version": "{digest}"}), view=views.graph,
        claim="A run of this version can go along these transitions and along no others.",
        seen_from="this version, which cannot change",
        rests_on="the stored spec of that version, compiled; secrets in it are masked",
        unknown=("whether it is the current version", "which ways runs took: see observed in graph://runs/{run_id}",
                 "what models will answer", "the quality of its prompts"),
        limits=("facts about numbers of calls are bounds, no forecasts",), fresh_ms=HOUR_MS,
    ),
    Resource(
        "graph://runs/{run_id}", "run", "A run",
        "One run: status, result, usage, what it waits for; the ways it took, kept apart under observed.",
        Read("graph_run_get", {"run_id": "{run_id}"}),
        beside={"observed": Read("graph_render", {"run_id": "{run_id}", "format": "json"})},
        claim="This run has come this far, and took these ways this often.",
        seen_from="the run's log, when it was read", rests_on="the events of the run, folded",
        unknown=(_SAID_BY_MODELS, "what the run does next"),
        limits=("observed counts ways of the run's own graph, not of graphs inside it",),
    ),
    Resource(
        "graph://runs/{run_id}/receipt", "run_receipt", "A run's receipt",
        "What a run that has ended came to, in digests and under a seal that can be checked offline.",
        Read("graph_run_receipt", {"run_id": "{run_id}"}),
        claim="This run went so: these firings, these decisions, this end; its events are those that were sealed.",
        seen_from="the run's log and its seal, checked when it was read",
        rests_on="the chain of the run's events, and what was sealed when it ended",
        unknown=("what its member not_proven lists", _SAID_BY_MODELS),
        limits=("digests, no values: those are in the bundle that graph_run_receipt gives",),
    ),
    Resource(
        "graph://templates", "templates", "Templates", "Every ready-made graph: id, version, what it is for.",
        Read("graph_template_list"), view=views.template_index,
        claim="These templates can be made into graphs.",
        seen_from=PROGRAM, rests_on="the templates that come with it",
        unknown=("which of them suits a question",), limits=("parameters are in graph://templates/{id}",),
    ),
    Resource(
        "graph://templates/{id}", "template", "A template",
        "One template: its parameters with their schema, a sample, and the nodes and transitions the sample makes.",
        Read("graph_template_list", {"query": "{id}"}), view=views.template,
        claim="Made with the sample's parameters, the template is a graph of these nodes and transitions.",
        seen_from=PROGRAM, rests_on="the template and its sample, compiled",
        unknown=("what other parameters make of it: see graph_template_instantiate", "what models will answer"),
    ),
    Resource(
        "graph://approvals/pending", "pending_approvals", "Pending approvals",
        "Everything that waits for a person's decision: the prompt and exactly what will happen.",
        Read("graph_approval_list", {"status": "pending"}, rows="approvals"),
        claim="These decisions are open, each about exactly the subject shown.",
        seen_from="the store, when it was read", rests_on="the gates that runs have opened and nobody has closed",
        unknown=(_SAID_BY_MODELS, "how a person will decide"),
        limits=("a decision can be made, expire or be withdrawn at any moment after",),
    ),
    Resource(
        "graph://schema/spec-v2", "spec_schema", "Schema of a graph",
        "The JSON Schema (2020-12) of a graph spec, version 2.",
        Shipped(lambda _: {"schema": json_schema()}),
        claim="A spec that breaks this schema is refused.",
        seen_from=PROGRAM, rests_on="the models that check a spec",
        unknown=("what no schema can say: see the issues graph_create answers with action validate",),
        fresh_ms=HOUR_MS, public=True,
    ),
    Resource(
        "graph://docs/{page}", "docs", "A page of the documentation",
        "One page, as Markdown; begin with graph://docs/index. A page in a folder is named howto/wait.",
        Shipped(lambda parts: pages.give(parts["page"])),
        claim="This is what the documentation of this program says.",
        seen_from=PROGRAM, rests_on="the page that comes with it, whose examples its tests run",
        unknown=("how this server is set: see graph_status",), fresh_ms=HOUR_MS, public=True,
    ),
)  # fmt: skip
