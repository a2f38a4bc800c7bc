"""The fields of a spec, its nodes and its edges as pydantic models; a node's `config` is its type's matter."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Described

NAME_PATTERN: Final = r"^[A-Za-z0-9_.-]{1,64}$"
ON_NODE: Final = ("prompt", "model", "json_mode", "max_tokens", "evidence_required", "routes")
"""Fields of a config that may stand on the node itself."""


class _Fields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)


class EdgeFields(_Fields):
    """A way a token always takes: several edges from one node are taken in parallel."""

    source: str = Described(alias="from")
    """A node id; START is another way to name the entry."""
    to: str
    """A node id, or END."""
    id: str = ""
    label: str = ""
    weight: Annotated[float, Described(ge=0, le=1)] | None = None
    """For generators and simulation only."""
    condition: str | None = None
    """Read as the label: an edge has no condition, a router chooses."""


class NodeFields(_Fields):
    """A node. What its type needs is in `config`; some fields may stand on the node itself."""

    id: str
    """Letters, digits and `_ . -`, at most 64; END and START are taken."""
    type: str
    label: str = ""
    description: str = ""
    config: dict[str, Any] | None = None
    prompt: Any = None
    model: Any = None
    json_mode: Any = None
    max_tokens: Any = None
    evidence_required: Any = None
    routes: Any = None


class GraphFields(_Fields):
    """A graph of nodes and edges; the result is what its ending node wrote, or what is at `output_key`."""

    spec_version: str = "2"
    """"2"; "1" is read too."""
    name: Annotated[str, Described(pattern=NAME_PATTERN)]
    """Also the graph's id."""
    description: str = ""
    metadata: dict[str, Any] = {}
    """Flat labels; no part of behaviour."""
    entry: str | None = None
    """The node that runs first."""
    output_key: Annotated[str, Described(min_length=1)] | None = None
    """State path of the result."""
    input_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the run's input."""
    nodes: Annotated[list[Any], Described(min_length=1)]
    edges: list[Any] = []
    reducers: dict[str, Literal["last_write_wins", "append", "add", "merge"]] = {}
    """How parallel writes of a key become one value."""
    max_iterations: Annotated[int, Described(ge=1, le=100_000_000)] | None = None
    """Bounds the longest chain of firings; left out, it follows from the nodes and loops."""
    max_parallelism: Annotated[int, Described(ge=1, le=1000)] = 8
    """Model calls in flight at once."""
    budgets: dict[str, Any] | None = None
    """Not available yet."""


@cache
def field_names(model: type[BaseModel]) -> tuple[str, ...]:
    """The names a spec uses for the fields of `model`."""
    names = tuple(field.alias or name for name, field in model.model_fields.items())
    return (*names, "recursion_limit") if model is GraphFields else names
