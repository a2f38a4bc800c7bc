"""The fields of a spec, its nodes and its edges as pydantic models; a node's `config` is its type's matter."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Described

from agent_graph.core.bounds import Len
from agent_graph.core.budgets import MOST

NAME_PATTERN: Final = r"^[A-Za-z0-9_.-]{1,64}$"
ON_NODE: Final = ("prompt", "model", "json_mode", "max_tokens", "evidence_required", "routes")
"""Fields of a config that may stand on the node itself."""


Bound = Annotated[int, Described(ge=1, le=MOST)]


class _Fields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)


class EdgeFields(_Fields):
    """A way a token always takes: several edges from one node are taken in parallel."""

    source: str = Described(alias="from")
    """A node id; START is another way to name the entry."""
    to: str
    """A node id; END ends this branch, END_RUN the whole run."""
    id: str = ""
    """Its name in the events of a run; left out, `from>to`."""
    label: str = ""
    """Shown in drawings."""
    weight: Annotated[float, Described(ge=0, le=1)] | None = None
    """For generators and simulation only."""
    condition: str | None = None
    """Read as the label: an edge has no condition, a router chooses."""


class NodeFields(_Fields):
    """A node. What its type needs is in `config`; some fields may stand on the node itself."""

    id: str
    """Letters, digits and `_ . -`, at most 64; END, END_RUN and START are taken."""
    type: str
    """One of the node types."""
    label: str = ""
    """Its name for people."""
    description: str = ""
    """What it is for, for people."""
    config: dict[str, Any] | None = None
    """The fields of its type."""
    prompt: Any = None
    model: Any = None
    json_mode: Any = None
    max_tokens: Any = None
    evidence_required: Any = None
    routes: Any = None


class BudgetFields(_Fields):
    """What a run may use, its inner graphs included. Counted before it is used."""

    max_llm_calls: Bound | None = None
    """Calls of models, those that are made again included."""
    max_tokens: Bound | None = None
    """Tokens of prompts and answers, as the hosts count them."""
    max_nodes: Bound | None = None
    """Firings of nodes."""
    max_wall_clock_ms: Bound | None = None
    """Time from the run's start on, waiting for people and interruptions included."""
    on_budget: Literal["fail", "pause"] | Annotated[dict[Literal["goto"], list[str]], Len(1)] = "fail"
    """What follows when something is used up: the run fails; or a person is asked for more; or it goes on at `goto`
    alone."""


class GraphFields(_Fields):
    """A graph of nodes and edges; the result is what its ending node wrote, or what is at `output_key`."""

    spec_version: str = "2"
    """"2"; "1" is read too."""
    name: Annotated[str, Described(pattern=NAME_PATTERN)]
    """Also the graph's id."""
    description: str = ""
    """What it is for, for people."""
    metadata: dict[str, Any] = {}
    """Flat labels; no part of behaviour."""
    entry: str | None = None
    """The node that runs first."""
    output_key: Annotated[str, Described(min_length=1)] | None = None
    """State path of the result."""
    input_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the run's input."""
    nodes: Annotated[list[Any], Described(min_length=1)]
    """What is done."""
    edges: list[Any] = []
    """Which node comes after which: {from, to, id?, label?, weight?}."""
    reducers: dict[str, Literal["last_write_wins", "append", "add", "merge"]] = {}
    """How parallel writes of a key become one value: {key: reducer}."""
    max_iterations: Annotated[int, Described(ge=1, le=100_000_000)] | None = None
    """Bounds the longest chain of firings; left out, it follows from the nodes and loops."""
    max_parallelism: Annotated[int, Described(ge=1, le=1000)] = 8
    """Model calls in flight at once."""
    budgets: Annotated[BudgetFields, Described(strict=False)] | None = None
    """What a run may use; a caller can tighten it."""


@cache
def field_names(model: type[BaseModel]) -> tuple[str, ...]:
    """The names a spec uses for the fields of `model`."""
    names = tuple(field.alias or name for name, field in model.model_fields.items())
    return (*names, "recursion_limit") if model is GraphFields else names
