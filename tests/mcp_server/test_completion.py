"""Completion of ids and names, in both eras of the protocol."""

from __future__ import annotations

import pytest
from mcp.types import PromptReference, ResourceTemplateReference

from agent_graph.mcp_server.completion import PARTS, offered
from agent_graph.mcp_server.prompts import PROMPTS
from agent_graph.mcp_server.resources.table import TABLE
from agent_graph.tools.deps import Caller
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, Assistant, connected
from tests.tools.specs import gated, keep


async def completed(
    assistant: Assistant, ref: str, argument: str, typed: str = "", context: dict[str, str] | None = None
) -> tuple[list[str], bool | None]:
    reference = ResourceTemplateReference(uri=ref) if "://" in ref else PromptReference(name=ref)
    found = await assistant.client.complete(reference, {"name": argument, "value": typed}, context)
    return found.completion.values, found.completion.has_more


@pytest.mark.parametrize("era", ERAS)
async def test_ids_are_offered_by_their_beginnings(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        for name in ("alpha", "alps", "beta"):
            await assistant.ok("graph_create", spec=keep(name))
        version = (await assistant.ok("graph_create", spec=gated()))["graph_version"]
        run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "x"}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        approval_id = (await assistant.ok("graph_approval_list"))["approvals"][0]["approval_id"]

        one = "graph://graphs/{id}"
        assert await completed(assistant, one, "id", "al") == (["alpha", "alps"], False)
        assert await completed(assistant, one, "id", "lph") == ([], False)
        assert await completed(assistant, "review_graph", "graph_id", "b") == (["beta"], False)
        pinned = "graph://graphs/{id}/versions/{digest}"
        assert await completed(assistant, pinned, "digest", "sha", {"id": "gated"}) == ([version], False)
        assert await completed(assistant, pinned, "digest", "", {"id": "nobody"}) == ([], False)
        assert await completed(assistant, pinned, "digest") == ([], False)
        assert await completed(assistant, "graph://runs/{run_id}", "run_id", "run-") == ([run_id], False)
        assert await completed(assistant, "decide_approval", "approval_id") == ([approval_id], False)
        assert await completed(assistant, "graph://templates/{id}", "id", "deb") == (["debate"], False)
        assert await completed(assistant, "start_council", "template", "deb") == (["debate"], False)
        assert await completed(assistant, "graph://docs/{page}", "page", "howto/w") == (["howto/wait"], False)
        assert await completed(assistant, "import_diagram", "format", "mer") == (["mermaid"], False)


@pytest.mark.parametrize("era", ERAS)
async def test_where_nothing_is_named_nothing_is_offered(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        for ref, argument in (
            ("start_council", "question"), ("start_council", "mood"), ("weather", "x"), ("graph://weather/{x}", "x"),
            ("graph://graphs/{id}", "mood"),
        ):  # fmt: skip
            assert await completed(assistant, ref, argument) == ([], False)


async def test_at_most_a_hundred_are_offered_and_it_is_said_that_there_are_more() -> None:
    async with opened() as deps, connected(deps) as assistant:
        for number in range(101):
            await assistant.ok("graph_create", spec=keep(f"g{number:03}"))
        values, more = await completed(assistant, "graph://graphs/{id}", "id", "g")
        assert values == [f"g{number:03}" for number in range(100)]
        assert more is True
        assert await completed(assistant, "graph://graphs/{id}", "id", "g1") == (["g100"], False)


async def test_nobody_is_offered_what_they_may_not_see() -> None:
    ada, bob = (Caller("assistant", principal=name, scopes=frozenset({"runs:read", "runs:write"}))
                for name in ("ada", "bob"))  # fmt: skip
    async with opened() as deps:
        await Tools(deps).ok("graph_create", spec=gated())
        run_id = await Tools(deps, ada).run("gated", {"draft": "x"})
        await Tools(deps, ada).ok("graph_run_wait", run_id=run_id, until="waiting")
        for kind, count in (("run_id", 1), ("approval_id", 1), ("graph_id", 1)):
            assert len((await offered(deps, kind, "", chosen={}, caller=ada))[0]) == count
        assert await offered(deps, "run_id", "", chosen={}, caller=bob) == ([], False)
        assert await offered(deps, "approval_id", "", chosen={}, caller=bob) == ([], False)


def test_every_part_of_an_address_can_be_completed() -> None:
    assert set(PARTS) == {(row.name, part) for row in TABLE for part in row.parts}
    for prompt in PROMPTS.values():
        assert all(
            argument.completes for argument in prompt.arguments if argument.name.endswith("_id")
        )  # fmt: skip
