"""Runs that share a model host: in turns, without their limits of time, and gently while it has too much to do."""

from __future__ import annotations

import asyncio

from agent_graph.core import events as e
from agent_graph.core.effects import CallModel
from agent_graph.engine.limiter import Limiter
from agent_graph.errors import ModelOverloaded
from agent_graph.llm.scripted import Reply, ScriptedModel
from tests.engine.room import Gates, Room, opened
from tests.specs import join, llm, passthrough, spec

WIDTH = 60
WIDE = spec(
    passthrough("s"), *(llm(f"w{n}", f"wide {n}") for n in range(WIDTH)), join("j"),
    edges=" ".join(f"s>w{n} w{n}>j" for n in range(WIDTH)) + " j>END", output_key="input", name="wide",
)  # fmt: skip
NARROW = spec(llm("one", "narrow", output_key="said"), edges="one>END", output_key="said", name="narrow")


def hosts(room: Room) -> dict[str, object]:
    return dict(room.shell.limiter.load())


async def test_a_run_with_one_call_waits_for_one_call_of_a_run_with_many() -> None:
    gates = Gates("wide 0")
    model = ScriptedModel(gates, parallel=1)
    async with opened(model) as room:
        await room.create(WIDE)
        many = str((await room.data("graph_run_start", graph_id="wide", input={"input": "x"}))["run_id"])
        await gates.reached("wide 0")
        one = await room.start(NARROW)
        while room.shell.limiter.load()["scripted"]["runs_waiting"] != 2:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        gates.open("wide 0")
        assert (await room.ended(one)).status == "completed"
        prompts = [str(call.messages[-1]["content"]) for call in model.calls]
        assert prompts.index("narrow") <= 2
        assert (await room.ended(many)).status == "completed"
        assert len(model.calls) == WIDTH + 1


async def test_waiting_for_a_place_is_no_part_of_a_calls_time() -> None:
    slow = Reply(when="slow", text="late", delay_ms=120)
    model = ScriptedModel([slow, Reply(when="quick", text="soon")], parallel=1)
    graph = spec(
        passthrough("s"), llm("slow"), llm("quick", timeout_ms=60), join("j"),
        edges="s>slow s>quick slow>j quick>j j>END", output_key="input",
    )  # fmt: skip
    async with opened(model) as room:
        run_id = await room.start(graph, {"input": "x"})
        assert (await room.ended(run_id)).status == "completed"
        assert await room.facts(run_id, e.NodeFailed, e.NodeRetried) == []
        assert [attempt for _, attempt in await room.started(run_id)] == [1] * 4


async def test_who_waits_for_a_place_is_cancelled_at_once() -> None:
    gates = Gates("narrow")
    model = ScriptedModel(gates, parallel=1)
    async with opened(model) as room:
        first = await room.start(NARROW)
        await gates.reached("narrow")
        second = await room.start(NARROW)
        while not room.shell.limiter.load()["scripted"]["waiting"]:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        await room.data("graph_run_cancel", run_id=second, reason="no need")
        assert (await room.ended(second)).status == "cancelled"
        assert hosts(room)["scripted"]["waiting"] == 0  # type: ignore[index]  # an object
        assert gates.cancelled == []
        gates.open("narrow")
        assert (await room.ended(first)).status == "completed"
        assert len(model.calls) == 1


async def test_a_host_that_has_too_much_to_do_fails_no_run_that_had_not_been_asked_yet() -> None:
    left = 3

    async def answer(call: CallModel) -> Reply:
        nonlocal left
        if left:
            left -= 1
            return Reply(error={"code": "MODEL_OVERLOADED", "message": "the queue is full", "status": 503})
        return Reply(text="fine")

    model = ScriptedModel(answer, parallel=4)
    async with opened(model) as room:
        await room.create(NARROW)
        run_ids = [(await room.data("graph_run_start", graph_id="narrow"))["run_id"] for _ in range(30)]
        assert {(await room.ended(run_id)).status for run_id in run_ids} == {"completed"}
        attempts = [await room.started(run_id) for run_id in run_ids]
        assert sum(each[-1][1] > 1 for each in attempts) <= 3, "only those that were refused were asked again"
        assert model.most_at_once <= 4
        assert len(model.calls) == 30 + 3


async def test_what_a_host_asks_for_by_retry_after_holds_for_every_run_and_a_rate_for_one_model() -> None:
    limiter = Limiter()
    for status, model in ((503, "any"), (429, "rated")):
        try:
            async with limiter.place(str(status), parallel=4, model=model):
                raise ModelOverloaded("later", status=status, retry_after_ms=40)
        except ModelOverloaded:
            pass
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with limiter.place("429", parallel=4, model="other"):
        assert loop.time() - began < 0.04
    async with limiter.place("429", parallel=4, model="rated"):
        assert loop.time() - began >= 0.039
    async with limiter.place("503", parallel=4, model="other"):
        assert limiter.load()["503"]["held_back_ms"] == 0
    assert limiter.load()["503"]["allowed"] == 2


async def test_the_status_says_who_waits_at_which_host() -> None:
    gates = Gates("narrow")
    async with opened(ScriptedModel(gates, parallel=1)) as room:
        await room.start(NARROW)
        await gates.reached("narrow")
        await room.data("graph_run_start", graph_id="narrow")
        while not room.shell.limiter.load()["scripted"]["waiting"]:  # noqa: ASYNC110  (no event tells of it)
            await asyncio.sleep(0)
        assert (await room.data("graph_status"))["capacity"]["hosts"] == {
            "scripted": {
                "parallel": 1, "allowed": 1, "in_flight": 1, "waiting": 1, "runs_waiting": 1, "held_back_ms": 0,
            }
        }  # fmt: skip
        gates.open("narrow")


async def test_a_place_given_to_who_gives_up_in_that_moment_goes_to_the_next() -> None:
    limiter = Limiter()

    async def call() -> None:
        async with limiter.place("host", parallel=1):
            pass

    async with limiter.place("host", parallel=1):
        gives_up, goes_on = asyncio.create_task(call()), asyncio.create_task(call())
        await asyncio.sleep(0)
    gives_up.cancel()  # it has been given the place and does not know yet
    await asyncio.gather(gives_up, return_exceptions=True)
    await goes_on
    assert gives_up.cancelled()
    assert limiter.load()["host"]["in_flight"] == 0


async def test_who_gave_up_a_moment_before_is_given_no_place() -> None:
    limiter = Limiter()

    async def call() -> None:
        async with limiter.place("host", parallel=1):
            pass

    async with limiter.place("host", parallel=1):
        gives_up, goes_on = asyncio.create_task(call()), asyncio.create_task(call())
        await asyncio.sleep(0)
        gives_up.cancel()  # it stands in the row still
    await goes_on
    await asyncio.gather(gives_up, return_exceptions=True)
    assert gives_up.cancelled()
    assert limiter.load()["host"]["waiting"] == limiter.load()["host"]["in_flight"] == 0


async def test_a_host_that_may_be_given_more_or_fewer_calls_from_now_on_is_given_so_many() -> None:
    limiter = Limiter()
    inside: list[int] = []
    go = asyncio.Event()

    async def call(number: int, parallel: int) -> None:
        async with limiter.place("host", parallel=parallel):
            inside.append(number)
            await go.wait()

    tasks = [asyncio.create_task(call(number, 1)) for number in range(3)]
    await asyncio.sleep(0)
    assert inside == [0]
    tasks.append(asyncio.create_task(call(3, 3)))
    for _ in range(3):
        await asyncio.sleep(0)
    assert inside == [0, 1, 2]
    tasks.append(asyncio.create_task(call(4, 2)))
    await asyncio.sleep(0)
    assert limiter.load()["host"]["allowed"] == 2
    go.set()
    await asyncio.gather(*tasks)
    assert sorted(inside) == [0, 1, 2, 3, 4]
