"""No secret gets past the edge of the engine: not into the file, the events, the live text, the log or an answer."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.core.approval import Ballot
from agent_graph.core.compile import compile_graph
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.core.redact import PLAIN
from agent_graph.engine.commands import Decide, PlaceGate
from agent_graph.engine.connections import Tool, ToolResult
from agent_graph.engine.redaction import clean_command
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import Settings, load
from agent_graph.tools.live import DELTA, follow
from tests.fakes.opened import Tools
from tests.specs import llm, spec

INPUT, SAID, THOUGHT = "sk-proj-Zq8Ww3Rr5Tt7Yy9Uu1Ii", "ghp_abcdefghijklmnopqrst1234", "hunter2-of-the-model"
NOTE, REASON, PAYLOAD, SPEC = (
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abcdef",
    "hunter2-signalled",
    "glpat-abcdefghij0123456789",
)
RESULT, ERROR, HOST = "hunter2-of-a-tool", "k-9f3a-echoed-by-the-host", "k-9f3a-echoed-by-the-host"
ALL = (INPUT, SAID, THOUGHT, NOTE, REASON, PAYLOAD, SPEC, RESULT, HOST)

GRAPH: dict[str, Any] = {
    "name": "leaky", "entry": "ask", "output_key": "told", "description": f"made with {SPEC}",
    "nodes": [
        {"id": "ask", "type": "llm", "config": {"prompt": "{input}", "output_key": "draft", "tools": ["desk/look"]}},
        {"id": "gate", "type": "human_approval", "config": {"prompt": "Go on?", "subject_key": "draft"}},
        {"id": "wait", "type": "signal", "config": {"name": "go", "output_key": "told"}},
    ],
    "edges": [{"from": "ask", "to": "gate"}, {"from": "gate", "to": "wait"}],
}  # fmt: skip


class Desk:
    """A connection whose one tool tells a secret."""

    name = "desk"

    async def tools(self) -> tuple[Tool, ...]:
        return (Tool("look", "looks", {"type": "object"}, idempotent=True),)

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        return ToolResult(json.dumps({"rows": 3, "credentials": {"joe": RESULT}}))

    async def aclose(self) -> None:
        pass


def model() -> ScriptedModel:
    return ScriptedModel([
        Reply(result="rows", text=f"It is {SAID}, I am sure.", thinking=f"the password is {THOUGHT}", chunks=40),
        Reply(when="fail", error={"code": "MODEL_REFUSED", "message": f"the key {ERROR} is wrong"}),
        Reply(tool_calls=[{"id": "t1", "name": "look", "arguments": {"password": INPUT}}], text=""),
    ])  # fmt: skip


def settings(folder: Path) -> Settings:
    return load(environ={"AGENT_GRAPH_DATA_DIR": str(folder), "OPENAI_API_KEY": HOST, "AGENT_GRAPH_LOG": "debug"})


async def told_live(tools: Tools, run_id: str, into: list[JsonObject]) -> None:
    async for item in follow(tools.deps, run_id):
        into.append(item)
        if item["type"] == "run_status" and item["status"] in ("waiting", "completed", "failed"):
            return


def files(folder: Path) -> bytes:
    """The database, and what beside it is not merged into it."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("agent-graph.db*")))


async def everything(tools: Tools, run_id: str) -> str:
    """What the tools tell of a run."""
    answers = [
        await tools.ok("graph_run_get", run_id=run_id, include_state=True),
        await tools.ok("graph_run_state", run_id=run_id, include_history=True, node="ask"),
        await tools.ok("graph_run_events", run_id=run_id, limit=200),
        await tools.ok("graph_approval_list", run_id=run_id, status="all"),
        await tools.ok("graph_inspect", graph_id="leaky"),
    ]
    return json.dumps(answers, sort_keys=True)


@pytest.fixture
def log() -> Any:
    kept = io.StringIO()
    handler = logging.StreamHandler(kept)
    logging.getLogger().addHandler(handler)
    yield kept
    logging.getLogger().removeHandler(handler)


async def test_no_secret_that_comes_in_gets_out_or_into_the_file(tmp_path: Path, log: io.StringIO) -> None:
    scripted = model()
    live: list[JsonObject] = []
    async with open_app(settings(tmp_path), serve=False, model=scripted, connections=[Desk()]) as deps:
        tools = Tools(deps)
        created = await tools.ok("graph_create", spec=GRAPH)
        assert [one["code"] for one in created["warnings"]].count("SECRET_IN_SPEC") == 1
        run_id = await tools.run("leaky", {"q": f"what of {INPUT}?", "max_tokens": 7, "n": [1, {"api_key": "a b"}]})
        await told_live(tools, run_id, live)
        (approval,) = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
        await tools.ok(
            "graph_approval_decide", approval_id=approval["approval_id"], decision="approve", decided_by="ann",
            decision_note=f"as {NOTE} says",
        )  # fmt: skip
        await tools.ok("graph_run_signal", run_id=run_id, name="go", payload={"password": PAYLOAD, "tokens": 5})
        await tools.ok("graph_run_wait", run_id=run_id)
        other = await tools.run("leaky", "fail")
        failed = await tools.ok("graph_run_wait", run_id=other)
        assert failed["run"]["error"]["message"] == "the key [redacted] is wrong"
        third = await tools.run("leaky", "x")
        await tools.ok("graph_run_cancel", run_id=third, reason=f"because of {REASON}")
        refused = await tools.envelope("graph_inspect", graph_id=f"leaky {INPUT}")
        assert "[redacted]" in json.dumps(refused)
        logging.getLogger("agent_graph.x").warning("sent %s", HOST)
        before = await everything(tools, run_id)
        shown = json.dumps([live, refused, created, failed])
        kept = files(tmp_path)
    kept += files(tmp_path)
    async with open_app(settings(tmp_path), serve=False, model=scripted, connections=[Desk()]) as deps:
        after = await everything(Tools(deps), run_id)
    assert before == after, "what is shown after a restart is what was shown before"
    assert '"max_tokens": 7' in after
    assert '"tokens": 5' in after
    sent = json.dumps([call.messages for call in scripted.calls])
    for secret in ALL:
        assert secret.encode() not in kept
        for said in (shown, before, sent, log.getvalue()):
            assert secret not in said
    assert "sent [redacted]" in log.getvalue()


async def test_live_text_is_what_is_kept(tmp_path: Path) -> None:
    scripted = ScriptedModel([Reply(text=f"Take {SAID} and postgres://joe:hunter2@db now.", chunks=60)])
    live: list[JsonObject] = []
    async with open_app(settings(tmp_path), serve=False, model=scripted) as deps:
        tools = Tools(deps)
        spec = {"name": "say", "entry": "a", "nodes": [{"id": "a", "type": "llm"}], "edges": []}
        await tools.ok("graph_create", spec=spec)
        run_id = await tools.run("say", "x")
        await told_live(tools, run_id, live)
        got = await tools.ok("graph_run_get", run_id=run_id)
    text = "".join(str(item["text"]) for item in live if item["type"] == DELTA)
    assert text == got["final_state"] == "Take [redacted] and postgres://[redacted]@db now."


async def test_an_input_is_held_to_its_schema_as_it_will_run(tmp_path: Path) -> None:
    async with open_app(settings(tmp_path), serve=False, model=model()) as deps:
        tools = Tools(deps)
        schema = {"type": "object", "properties": {"password": {"type": "integer"}}}
        spec = {
            "name": "typed", "entry": "a", "nodes": [{"id": "a", "type": "passthrough"}], "edges": [],
            "input_schema": schema,
        }  # fmt: skip
        await tools.ok("graph_create", spec=spec)
        refused = await tools.refused("graph_run_start", graph_id="typed", input={"password": 123456})
        assert refused["error_code"] == "INPUT_INVALID"
        assert "secrets are taken out" in refused["error"]
        assert "123456" not in json.dumps(refused)


async def test_an_operators_rules_hold_and_no_spec_has_a_word_in_it(tmp_path: Path) -> None:
    text = '[redaction]\nnames = ["badge"]\npatterns = ["ACME-[0-9]{4}"]\nexcept_names = ["token"]\n'
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    async with open_app(settings(tmp_path), serve=False, model=model()) as deps:
        tools = Tools(deps)
        spec = {"name": "keep", "entry": "a", "nodes": [{"id": "a", "type": "passthrough"}], "edges": []}
        await tools.ok("graph_create", spec=spec)
        run_id = await tools.run("keep", {"badge": "77", "note": "ACME-1234", "token": "abcdefghijkl"})
        state = (await tools.ok("graph_run_state", run_id=run_id))["value"]
        assert state == {"badge": "[redacted]", "note": "[redacted]", "token": "abcdefghijkl"}
        status = await tools.ok("graph_status")
        assert "ACME-[0-9]{4}" in json.dumps(status)


async def test_a_call_that_is_cancelled_shows_nothing_of_what_was_held_back(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def never(call: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    async with open_app(settings(tmp_path), serve=False, model=ScriptedModel(never)) as deps:
        tools = Tools(deps)
        spec = {"name": "say", "entry": "a", "nodes": [{"id": "a", "type": "llm"}], "edges": []}
        await tools.ok("graph_create", spec=spec)
        run_id = await tools.run("say", "x")
        await asked.wait()
        await tools.ok("graph_run_cancel", run_id=run_id, reason="enough")
        assert (await tools.ok("graph_run_wait", run_id=run_id))["status"] == "cancelled"


def test_whatever_a_vote_or_a_placed_gate_says_is_clean() -> None:
    ballot = Ballot("approve", f"ann {SAID}", "cli", NOTE, client=f"desk {SAID}", on_behalf_of=f"bob {SAID}")
    graph = compile_graph(spec(llm("a"), edges="a>END")).graph
    assert graph is not None
    gate = PlaceGate(graph, "a", f"Really {SAID}?", 1000, (f"board {SAID}",), ("approve",), "ann", "cli")
    for command in (Decide("apr-1", ballot), gate):
        cleaned = repr(clean_command(PLAIN, command))
        assert SAID not in cleaned
        assert NOTE not in cleaned
