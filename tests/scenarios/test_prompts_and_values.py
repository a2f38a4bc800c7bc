"""Field cases of prompts and values (JP): braces, text that looks like a placeholder, depth and large numbers."""

from __future__ import annotations

from typing import Any

import pytest

from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import opened
from tests.specs import gate, llm, passthrough, put, router, rule, spec, transform

FINE = Reply(text="fine")


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ('Reply as {"label": "x", "opts": {}} about {input}.', 'Reply as {"label": "x", "opts": {}} about Q.'),
        ("{ } {} {", "{ } {} {"),
        ("{{input}}", "{input}"),
        ('{"a":{"b":{input}}}', '{"a":{"b":Q}}'),
        ("{input and", "{input and"),
        ("}{", "}{"),
        ("{0}", "{0}"),
        ("{input!r}", "{input!r}"),
        ("{input:>10}", "{input:>10}"),
        ("${input}", "$Q"),
        ("{{% raw %}}", "{{% raw %}}"),
        ("{missing?}.", "."),
    ],
)
async def test_JP03_only_placeholders_are_replaced(prompt: str, sent: str) -> None:
    """`{{input}}` is how to write a literal `{input}`."""
    model = ScriptedModel([FINE])
    async with opened(model) as room:
        assert (await room.run(spec(llm("a", prompt, output_key="o"), edges="a>END"), "Q")).status == "completed"
        assert model.calls[0].messages[-1]["content"] == sent


async def test_JP03_a_value_that_is_missing_is_an_error_before_any_call() -> None:
    model = ScriptedModel([FINE])
    async with opened(model) as room:
        row = await room.run(spec(llm("a", "about {missing}", output_key="o"), edges="a>END"), "Q")
        assert (row.status, row.error and row.error["code"]) == ("failed", "PROMPT_VALUE_MISSING")
        assert model.calls == []


async def test_JP04_what_a_model_or_user_wrote_is_never_filled_in_again() -> None:
    said = 'Use {api_note} and {input} and {"x":1}; \\ $1 \\g<0>'
    model = ScriptedModel([Reply(when="ask", text=said), Reply(when="Summarise", text="done")])
    graph = spec(
        llm("a", "ask {input}", output_key="ra"), llm("b", "Summarise: {ra}", output_key="rb"), edges="a>b b>END"
    )
    async with opened(model) as room:
        row = await room.run(graph, {"api_note": "SECRET", "question": "{ra}"})
        assert row.status == "completed"
        assert model.calls[1].messages[-1]["content"] == f"Summarise: {said}"
        assert "SECRET" not in model.calls[1].messages[-1]["content"]
        await room.run(graph, "{ra}")
        assert model.calls[2].messages[-1]["content"] == "ask {ra}"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


KEEP = spec(passthrough("p"), edges="p>END")


@pytest.mark.parametrize("levels", [1_000, 10_000, 100_000])
async def test_JP06_an_input_nested_too_deep_is_refused_and_the_session_lives(levels: int) -> None:
    async with opened(ScriptedModel()) as room:
        await room.create(KEEP)
        before = await room.counts()
        refused = await room.call("graph_run_start", graph_id="case", input={"deep": nested(levels)})
        assert refused["error_code"] == "INPUT_TOO_DEEP"
        text = '{"deep": ' + "[" * levels + "]" * levels + "}"
        told = await room.call("graph_run_start", graph_id="case", input=text)
        assert told["ok"] or told["error_code"] == "INPUT_TOO_DEEP"  # a text that cannot be read stays the text it is
        if told["ok"]:
            assert (await room.ended(told["run_id"])).final_state == (text,)
        else:
            assert await room.counts() == before
        assert (await room.run(KEEP, {"deep": nested(100)})).final_state == ({"deep": nested(100)},)


async def test_JP06_model_json_nested_too_deep_is_a_bad_reply() -> None:
    async with opened(ScriptedModel([Reply(text="[" * 5000 + "]" * 5000)])) as room:
        row = await room.run(spec(llm("a", json_mode=True, output_key="o"), edges="a>END"))
        assert (row.status, row.error and row.error["code"]) == ("failed", "MODEL_BAD_REPLY")


NUMBERS: dict[str, Any] = {
    "above 2^53": 2**53 + 1, "above 2^64": 2**64, "four hundred digits": 10**400,
    "minus zero": -0, "small": 1e-7, "negative": -(2**63) - 1,
}  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
async def test_JP06_numbers_stay_what_they_are_from_input_to_result(tmp_path: Any, number: Any) -> None:
    graph = spec(
        transform("x", {"op": "copy", "from": "n", "path": "m"}),
        router("r", rule("m", "eq", number, "yes"), default=["no"]),
        put("yes", same=True), put("no", same=False), gate("h"), edges="x>r yes>h no>h h>END", output_key="same",
    )  # fmt: skip
    async with opened(ScriptedModel(), tmp_path) as room:
        run_id = await room.start(graph, {"n": number})
        await room.reaches(run_id, "waiting")
    async with opened(ScriptedModel(), tmp_path) as room:
        (pending,) = await room.pending(run_id)
        await room.decide(pending["approval_id"])
        assert (await room.ended(run_id)).final_state == (True,)
        state = await room.state(run_id)
        assert (state["m"], type(state["m"])) == (number, type(number))


async def test_JP06_increments_of_large_integers_are_exact() -> None:
    graph = spec(transform("x", {"op": "increment", "path": "n", "value": 1}), edges="x>END", output_key="n")
    async with opened(ScriptedModel()) as room:
        for number in (2**53, 10**400, 2**64 - 1):
            assert (await room.run(graph, {"n": number})).final_state == (number + 1,)


async def test_JP06_an_integer_of_five_thousand_digits_is_refused_and_never_rounded() -> None:
    async with opened(ScriptedModel()) as room:
        await room.create(KEEP)
        before = await room.counts()
        assert (await room.call("graph_run_start", graph_id="case", input=10**5000))["error_code"] == "INPUT_INVALID"
        assert await room.counts() == before


@pytest.mark.timeout(60)
async def test_JP06_a_chain_of_ten_thousand_nodes_is_accepted_and_drawn() -> None:
    count = 10_000
    nodes = [passthrough(f"n{i}") for i in range(count)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(count - 1)] + [{"from": f"n{count - 1}", "to": "END"}]
    chain = spec(*nodes, name="chain", max_iterations=count) | {"edges": edges}
    async with opened(ScriptedModel()) as room:
        created = await room.create(chain)
        assert created["graph_id"] == "chain"
        run_id = (await room.data("graph_run_start", graph_id="chain", input={"a": 1}))["run_id"]
        row = await room.supervisor.wait(run_id, timeout_ms=50_000)
        assert (row.status, row.final_state) == ("completed", ({"a": 1},))
        drawn = await room.data("graph_render", graph_id="chain")
        assert drawn["counts"]["nodes"] >= count
        assert drawn["warnings"]
