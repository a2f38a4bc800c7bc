"""Resources as the SDK's own client sees them, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from typing import Any

import pytest
from mcp import MCPError

from agent_graph import __version__
from agent_graph.core.spec import json_schema
from agent_graph.mcp_server.resources import pages
from agent_graph.mcp_server.resources.serving import recent, static_resources
from agent_graph.mcp_server.resources.statement import Unreadable, read
from agent_graph.mcp_server.resources.table import TABLE, Read, find
from agent_graph.tools import registry
from agent_graph.tools.deps import Caller
from agent_graph.tools.registry import TOOLS
from tests.fakes.opened import Tools, opened
from tests.mcp_server.conftest import ERAS, Assistant, connected
from tests.mcp_server.static_bytes import static_bytes
from tests.tools.specs import echo, gated, keep

ASK = {
    "spec_version": "2", "name": "ask", "entry": "which",
    "nodes": [
        {"id": "which", "type": "router",
         "config": {"rules": [{"path": "n", "op": "gt", "value": 3, "targets": ["big"]}], "default": ["small"]}},
        {"id": "big", "type": "passthrough", "label": "A big one"},
        {"id": "small", "type": "passthrough"},
    ],
    "edges": [],
}  # fmt: skip


async def told(assistant: Assistant, uri: str) -> Any:
    """The statement at `uri`, with all that every statement has."""
    (content,) = (await assistant.client.read_resource(uri)).contents
    assert content.uri == uri
    assert content.mime_type == "application/json"
    statement = json.loads(content.text)
    assert list(statement) == ["schema_version", "uri", "authority", "provenance", "data"]
    assert statement["schema_version"] == "1"
    assert set(statement["authority"]) == {"claim", "observation_point", "limits"}
    assert statement["authority"]["claim"].endswith(".")
    assert statement["provenance"]["rests_on"]
    assert statement["provenance"]["does_not_know"]
    return statement


async def missing(assistant: Assistant, uri: str) -> Any:
    """The data of the error that a read of `uri` gives."""
    with pytest.raises(MCPError) as error:
        await assistant.client.read_resource(uri)
    assert error.value.error.code == -32602
    assert error.value.error.data["uri"] == uri
    return error.value.error.data


@pytest.mark.parametrize("era", ERAS)
async def test_the_index_of_graphs_is_shallow_and_the_detail_holds_every_legal_way(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=ASK)
        index = (await told(assistant, "graph://graphs"))["data"]
        (row,) = index["graphs"]
        assert row == {
            "graph_id": "ask", "graph_version": row["graph_version"], "description": "", "node_count": 3,
            "edge_count": row["edge_count"], "uri": "graph://graphs/ask",
        }  # fmt: skip
        detail = await told(assistant, row["uri"])
        assert detail["provenance"]["tool"] == "graph_inspect"
        assert detail["provenance"]["arguments"] == {"graph_id": "ask"}
        data = detail["data"]
        assert data["legal_targets"] == {"which": ["big", "small"], "big": ["END"], "small": ["END"]}
        assert data["transitions"][:2] == [
            {"from": "which", "to": "big", "names": ["rules/0"], "label": "n > 3"},
            {"from": "which", "to": "small", "names": ["default"], "label": "default"},
        ]
        assert {node["id"]: node.get("label") for node in data["nodes"]}["big"] == "A big one"
        assert data["versions"] == [row["graph_version"]]


@pytest.mark.parametrize("era", ERAS)
async def test_a_version_never_changes_by_a_byte(era: str) -> None:
    async with opened() as deps, connected(deps, era, cache=None) as assistant:
        version = (await assistant.ok("graph_create", spec=ASK))["graph_version"]
        uri = f"graph://graphs/ask/versions/{version}"
        before = (await assistant.client.read_resource(uri)).contents[0].text
        run_id = (await assistant.ok("graph_run_start", graph_id="ask", input={"n": 9}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id)
        await assistant.ok("graph_create", spec={**ASK, "description": "another"}, overwrite=True)
        assert (await assistant.client.read_resource(uri)).contents[0].text == before
        assert "_ms" not in before
        assert len((await told(assistant, "graph://graphs/ask"))["data"]["versions"]) == 2
        encoded = uri.replace(":", "%3A").replace("graph%3A//", "graph://")
        assert (await told(assistant, encoded))["data"] == json.loads(before)["data"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_a_run_did_is_kept_apart_from_what_it_may_do(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=ASK)
        run_id = (await assistant.ok("graph_run_start", graph_id="ask", input={"n": 9}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id)
        data = (await told(assistant, f"graph://runs/{run_id}"))["data"]
        assert (data["status"], data["final_state"]) == ("completed", {"n": 9})
        assert data["observed"]["ways"] == [
            {"from": "START", "to": "which", "name": "", "times": 1},
            {"from": "which", "to": "big", "name": "rules/0", "times": 1},
            {"from": "big", "to": "END", "name": "", "times": 1},
        ]
        assert data["observed"]["nodes"]["big"] == {"status": "completed", "firings": 1, "failed": 0}
        assert "observed" not in (await told(assistant, "graph://graphs/ask"))["data"]


async def test_a_pruned_run_says_what_is_no_longer_known() -> None:
    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=keep())
        run_id = (await assistant.ok("graph_run_start", graph_id="keep"))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id)
        await deps.store.retention.prune([run_id])
        statement = await told(assistant, f"graph://runs/{run_id}")
        assert "observed" not in statement["data"]
        assert "observed: RUN_PRUNED" in statement["provenance"]["does_not_know"]


@pytest.mark.parametrize("era", ERAS)
async def test_pending_approvals_are_those_the_tool_lists(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=gated())
        run_id = (await assistant.ok("graph_run_start", graph_id="gated", input={"draft": "Dear Dana"}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id, until="waiting")
        listed = await assistant.ok("graph_approval_list")
        assert (await told(assistant, "graph://approvals/pending"))["data"] == listed
        assert listed["approvals"][0]["subject"] == "Dear Dana"


async def test_a_long_index_is_read_page_by_page_to_its_end() -> None:
    async with opened() as deps, connected(deps) as assistant:
        for number in range(230):
            await assistant.ok("graph_create", spec={**keep(f"g{number:03}"), "description": "d" * 200})
        data = (await told(assistant, "graph://graphs"))["data"]
        assert len(data["graphs"]) == 230
        assert data["truncated"] is False


async def test_a_resource_is_whole_where_a_tool_cuts() -> None:
    async with opened() as deps, connected(deps) as assistant:
        await assistant.ok("graph_create", spec=keep())
        run_id = (await assistant.ok("graph_run_start", graph_id="keep", input={"text": "x" * 200_000}))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id)
        assert (await assistant.ok("graph_run_get", run_id=run_id))["truncated"] is True
        data = (await told(assistant, f"graph://runs/{run_id}"))["data"]
        assert len(data["final_state"]["text"]) == 200_000


@pytest.mark.parametrize("era", ERAS)
async def test_templates_are_an_index_and_details(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        rows = (await told(assistant, "graph://templates"))["data"]["templates"]
        assert {"template_id", "version", "title", "description", "uri"} == set(rows[0])
        for row in rows:
            data = (await told(assistant, row["uri"]))["data"]
            assert data["params"]
            assert data["made"]["transitions"]
        assert (await missing(assistant, "graph://templates/council"))["error_code"] == "RESOURCE_NOT_FOUND"


@pytest.mark.parametrize("era", ERAS)
async def test_the_schema_is_the_published_one(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        assert (await told(assistant, "graph://schema/spec-v2"))["data"] == {"schema": json_schema()}


@pytest.mark.parametrize("era", ERAS)
async def test_every_page_of_the_documentation_can_be_read_and_nothing_else(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        root = pages.folder()
        written = {page.relative_to(root).with_suffix("").as_posix(): page for page in root.rglob("*.md")}
        assert set(pages.names()) == set(written)
        for name in ("index", "howto/wait"):
            data = (await told(assistant, f"graph://docs/{name}"))["data"]
            assert data["markdown"] == written[name].read_text(encoding="utf-8")
            assert data["title"] in data["markdown"]
        assert (await told(assistant, "graph://docs/howto%2Fwait"))["data"]["page"] == "howto/wait"
        for bad in ("../pyproject", "..%2Fpyproject", "%2Fetc%2Fpasswd", "howto/../index", "index.md", "howto", "INDEX",
                    "..%252Fpyproject", "index%00"):  # fmt: skip
            assert (await missing(assistant, f"graph://docs/{bad}"))["error_code"] == "RESOURCE_NOT_FOUND"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("graph://graphs/nobody", "GRAPH_NOT_FOUND"),
        ("graph://graphs/keep/versions/sha256:0", "GRAPH_VERSION_NOT_FOUND"),
        ("graph://runs/run-none", "RUN_NOT_FOUND"),
        ("graph://runs/run-none/more", "RESOURCE_NOT_FOUND"),
        ("graph://graphs/", "RESOURCE_NOT_FOUND"),
        ("graph://weather", "RESOURCE_NOT_FOUND"),
        ("file:///etc/passwd", "RESOURCE_NOT_FOUND"),
        ("graph://graphs/" + "x" * 100, "INVALID_ARGUMENT"),
        ("graph://graphs/" + "x" * 10_000, "RESOURCE_NOT_FOUND"),
    ],
    ids=range(9),
)
async def test_what_is_not_there_is_an_error_with_its_address(era: str, uri: str, code: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=keep())
        data = await missing(assistant, uri)
        assert data["error_code"] == code
        assert data["ok"] is False


@pytest.mark.parametrize("era", ERAS)
async def test_everything_that_is_listed_can_be_read(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        await assistant.ok("graph_create", spec=echo())
        run_id = (await assistant.ok("graph_run_start", graph_id="echo"))["run_id"]
        await assistant.ok("graph_run_wait", run_id=run_id)
        listed = (await assistant.client.list_resources()).resources
        uris = [resource.uri for resource in listed]
        assert len(uris) == len(set(uris))
        assert uris[-2:] == ["graph://graphs/echo", f"graph://runs/{run_id}"]
        assert {f"graph://docs/{page}" for page in pages.names()} < set(uris)
        for uri in uris:
            await told(assistant, uri)
        with pytest.raises(MCPError, match="one page"):
            await assistant.client.list_resources(cursor="x")


@pytest.mark.parametrize("era", ERAS)
async def test_the_forms_of_addresses_are_the_rows_of_the_table(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        forms = (await assistant.client.list_resource_templates()).resource_templates
        assert [form.uri_template for form in forms] == [row.uri for row in TABLE if row.parts]
        assert all(form.description and form.title for form in forms)


async def test_another_principals_run_reads_like_one_that_does_not_exist() -> None:
    ada, bob = (Caller("assistant", principal=name, scopes=frozenset({"runs:read", "runs:write"}))
                for name in ("ada", "bob"))  # fmt: skip
    async with opened() as deps:
        await Tools(deps).ok("graph_create", spec=gated())
        run_id = await Tools(deps, ada).run("gated", {"draft": "x"})
        await Tools(deps, ada).ok("graph_run_wait", run_id=run_id, until="waiting")
        assert json.loads((await read(deps, f"graph://runs/{run_id}", caller=ada)).text)["data"]["observed"]
        pending = json.loads((await read(deps, "graph://approvals/pending", caller=bob)).text)
        assert pending["data"]["approvals"] == []
        for uri in (f"graph://runs/{run_id}", "graph://runs/run-none"):
            with pytest.raises(Unreadable) as unread:
                await read(deps, uri, caller=bob)
            assert unread.value.refusal["error_code"] == "RUN_NOT_FOUND"
        listed = [resource.uri for resource in await recent(deps, bob)]
        assert listed == ["graph://graphs/gated"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_bug_of_ours_is_an_internal_error_that_discloses_nothing(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(call: Any) -> Any:
        raise ZeroDivisionError("a secret")

    monkeypatch.setitem(TOOLS, "graph_list", replace(TOOLS["graph_list"], run=breaks))
    monkeypatch.setattr(registry.log, "exception", lambda *said: None)
    async with opened() as deps, connected(deps, era) as assistant:
        with pytest.raises(MCPError) as error:
            await assistant.client.read_resource("graph://graphs")
        assert error.value.error.code == -32603
        assert error.value.error.data["error_code"] == "INTERNAL"
        assert "secret" not in str(error.value.error)
        assert (await assistant.client.list_resources()).resources, "what else there is can be listed all the same"


def test_the_table_names_tools_that_are_there_and_only_read() -> None:
    reads = [row.source for row in TABLE if isinstance(row.source, Read)]
    reads += [beside for row in TABLE for beside in row.beside.values()]
    for source in reads:
        tool = TOOLS[source.tool]
        assert tool.read_only
        assert set(source.arguments) <= set(tool.params.model_fields)
    for row in TABLE:
        found = find(row.uri.replace("{", "").replace("}", ""))
        assert found is not None
        assert found[0] is row


def test_the_documentation_is_in_the_wheel(repository: Any) -> None:
    import tomllib

    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["docs"] == "agent_graph/docs"


async def test_static_resources_and_lists_are_the_same_bytes_in_two_processes(repository: Any) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.mcp_server.static_bytes", cwd=repository, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(repository)},
    )  # fmt: skip
    said, _ = await other.communicate()
    assert said.decode() == await static_bytes()
    assert said.count(b"\n") == len(static_resources()) - 2 + 3


@pytest.mark.parametrize("era", ERAS)
async def test_the_version_that_speaks_is_told(era: str) -> None:
    async with opened() as deps, connected(deps, era) as assistant:
        told_by = (await told(assistant, "graph://schema/spec-v2"))["authority"]["observation_point"]
        assert __version__ in told_by
