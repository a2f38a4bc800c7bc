"""Notices: written with their events, told at least once and in order, and never in the way of a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import open_app
from agent_graph.connect.base import KINDS, Letter, Receipt
from agent_graph.engine.announce import Announcer
from agent_graph.engine.outbox import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, MOST_WAITING, TOO_OLD_MS, Outbox
from agent_graph.settings import Settings, load
from agent_graph.store.base import Notice, Store
from agent_graph.store.outbox import keep
from agent_graph.store.sqlite import SqliteStore, open_store
from tests.fakes.hands import BEGIN_MS, Hands
from tests.fakes.opened import Tools, council
from tests.fakes.receiver import SECRET, Receiver, answer, receiving
from tests.tools.specs import gated
from tests.tools.specs import keep as keeping


def settings_for(url: str, folder: Path | str = ":memory:", **more: str) -> Settings:
    environ = {"AGENT_GRAPH_NOTIFY_URL": url, "AGENT_GRAPH_NOTIFY_SECRET": SECRET}
    environ |= {f"AGENT_GRAPH_NOTIFY_{name.upper()}": value for name, value in more.items()}
    return load({"data_dir": str(folder)}, environ=environ)


@asynccontextmanager
async def told(receiver: Receiver, folder: Path | str = ":memory:", **more: str) -> AsyncIterator[Tools]:
    async with open_app(settings_for(receiver.url, folder, **more), model=council()) as deps:
        yield Tools(deps)


async def waiting_at_gate(tools: Tools, subject: Any = "a letter", **config: Any) -> tuple[str, str]:
    """Ids of a run and of the approval it waits for."""
    await tools.ok("graph_create", spec=gated(**config), overwrite=True)
    run_id = await tools.run("gated", {"draft": subject})
    await tools.ok("graph_run_wait", run_id=run_id, until="waiting", timeout_ms=10_000)
    [approval] = (await tools.ok("graph_approval_list", run_id=run_id))["approvals"]
    return run_id, approval["approval_id"]


async def decide(tools: Tools, approval_id: str, decision: str = "approve") -> None:
    await tools.ok("graph_approval_decide", approval_id=approval_id, decision=decision, decided_by="Ada")


# -- what is told --------------------------------------------------------------------------------------------------


async def test_an_approval_is_told_when_it_opens_and_when_it_is_decided_and_so_is_the_end() -> None:
    async with receiving() as receiver:
        async with told(receiver) as tools:
            run_id, approval_id = await waiting_at_gate(tools)
            await receiver.heard(1)
            await decide(tools, approval_id)
            await receiver.heard(3)
        opened, decided, ended = (post.json for post in receiver.posts)
    assert [opened["type"], decided["type"], ended["type"]] == ["approval.opened", "approval.decided", "run.ended"]
    assert opened["data"]["approval_id"] == decided["data"]["approval_id"] == approval_id
    assert opened["data"]["status"] == "pending"
    assert opened["data"]["subject_digest"].startswith("sha256:")
    assert (decided["data"]["status"], decided["data"]["decision"]) == ("approved", "approve")
    assert (decided["data"]["decided_by"], decided["data"]["via"]) == ("Ada", "assistant")
    assert (ended["data"]["run_id"], ended["data"]["status"]) == (run_id, "completed")
    assert all(post.signed_with(SECRET) and post.headers["webhook-id"] == post.json["id"] for post in receiver.posts)
    assert len({post.json["id"] for post in receiver.posts}) == 3
    assert not any("." in post.json["id"] for post in receiver.posts), "a dot parts what is signed"


async def test_what_is_told_is_small_and_says_nothing_of_what_the_run_is_about() -> None:
    async with receiving() as receiver, told(receiver) as tools:
        _, approval_id = await waiting_at_gate(tools, "the secret plan " * 1_000, prompt="Shall we? {run_input}")
        await decide(tools, approval_id, "reject")
        await receiver.heard(3)
        said = b"".join(post.body for post in receiver.posts)
    assert b"secret plan" not in said
    assert b"Shall we" not in said
    assert max(len(post.body) for post in receiver.posts) < 2_000
    assert receiver.posts[2].json["data"]["error_code"] == "APPROVAL_REJECTED"


async def test_prompt_and_subject_are_told_where_the_operator_wants_it_without_secrets_and_cut() -> None:
    subject = {"to": "Bob", "api_key": "hunter2", "text": "y" * 10_000}
    async with receiving() as receiver, told(receiver, text="yes") as tools:
        await waiting_at_gate(tools, subject)
        [post] = await receiver.heard(1)
    assert post.json["data"]["prompt"] == "May this be sent?"
    assert "Bob" in post.json["data"]["subject"]
    assert "hunter2" not in post.body.decode()
    assert post.json["data"]["subject"].endswith(" [cut]")
    assert len(post.body) < 10_000


async def test_expiring_expired_and_withdrawn_are_told() -> None:
    async with receiving() as receiver, told(receiver) as tools:
        await waiting_at_gate(tools, expiry_ms=400, remind_ms=300)
        await receiver.heard(4)
        assert receiver.types() == ["approval.opened", "approval.expiring", "approval.expired", "run.ended"]
        assert receiver.posts[1].json["data"]["status"] == "pending"
        run_id, _ = await waiting_at_gate(tools)
        await tools.ok("graph_run_cancel", run_id=run_id, reason="not wanted")
        await receiver.heard(7)
    assert receiver.types()[4:] == ["approval.opened", "approval.withdrawn", "run.ended"]
    assert receiver.posts[6].json["data"]["status"] == "cancelled"


async def test_only_what_the_operator_asks_for_is_told() -> None:
    async with receiving() as receiver, told(receiver, events="run.ended") as tools:
        _, approval_id = await waiting_at_gate(tools)
        await decide(tools, approval_id)
        await receiver.heard(1)
        assert receiver.types() == ["run.ended"]


async def test_a_link_leads_to_the_console_where_one_is_served() -> None:
    async with receiving() as receiver, told(receiver) as tools:
        assert tools.deps.outbox is not None
        tools.deps.outbox.console = "http://127.0.0.1:8765"
        run_id, approval_id = await waiting_at_gate(tools)
        await decide(tools, approval_id)
        posts = await receiver.heard(3)
    assert posts[0].json["data"]["link"] == f"http://127.0.0.1:8765/approvals/{approval_id}"
    assert posts[2].json["data"]["link"] == f"http://127.0.0.1:8765/runs/{run_id}"


async def test_nobody_is_told_and_nothing_written_where_nothing_is_set_up() -> None:
    async with open_app(load({"data_dir": ":memory:"}, environ={}), model=council()) as deps:
        tools = Tools(deps)
        _, approval_id = await waiting_at_gate(tools)
        await decide(tools, approval_id)
        assert await deps.store.outbox.states() == ()
        assert deps.outbox is None


# -- trouble -------------------------------------------------------------------------------------------------------


async def test_a_run_does_not_wait_for_a_receiver_that_hangs_or_fails() -> None:
    async with receiving() as receiver, told(receiver, timeout_ms="1000") as tools:
        receiver.answers.append(b"")
        await tools.ok("graph_create", spec=keeping())
        for _ in range(3):
            assert (await tools.ended("keep"))["status"] == "completed"
        await receiver.heard(1)
        state = (await tools.ok("graph_status"))["notifications"]["webhook"]
        assert (state["waiting"], state["delivered"]) == (3, 0)


async def test_what_a_receiver_that_was_down_missed_it_is_told_after_a_restart(tmp_path: Path) -> None:
    async with receiving() as gone:
        pass
    async with told(gone, tmp_path) as tools:
        run_id, approval_id = await waiting_at_gate(tools)
        await decide(tools, approval_id)
        await tools.ok("graph_run_wait", run_id=run_id)
    async with receiving(port=gone.port) as receiver, told(receiver, tmp_path):
        await receiver.heard(3)
    assert receiver.types() == ["approval.opened", "approval.decided", "run.ended"]


async def test_a_command_that_ends_at_once_has_told_of_its_run(tmp_path: Path) -> None:
    """The process is over as soon as its run is: what can be told by then is."""
    async with receiving() as receiver:
        async with told(receiver, tmp_path) as tools:
            await tools.ok("graph_create", spec=keeping())
            await tools.ended("keep")
        assert receiver.types() == ["run.ended"]


class Taker:
    """A target that answers as a test wants."""

    name = "taker"

    def __init__(self, *receipts: Receipt) -> None:
        self.receipts = list(receipts)
        self.letters: list[str] = []
        self.told = asyncio.Event()

    async def tell(self, letter: Letter) -> Receipt:
        self.letters.append(letter.letter_id)
        self.told.set()
        return self.receipts.pop(0) if self.receipts else Receipt("delivered")

    async def aclose(self) -> None:
        pass


AWAY = Receipt("away", "it answered 503")
REFUSED = Receipt("refused", "it answered 400")


@asynccontextmanager
async def outbox_over(taker: Taker, *, notices: int = 1, tries: int = 5) -> AsyncIterator[tuple[Outbox, Store, Hands]]:
    clock = Hands()
    async with await open_store(":memory:") as store:
        await written(store, notices)
        yield Outbox(store, clock, [taker], announcer=Announcer(("taker",)), tries=tries), store, clock


async def written(store: SqliteStore, count: int) -> None:
    rows = [Notice(f"n{number}", ("taker",), BEGIN_MS, {"id": f"n{number}"}) for number in range(count)]
    await store.database.write(lambda connection: keep(rows, connection))


async def stand(store: Store) -> tuple[int, int, int]:
    [state] = await store.outbox.states()
    return state.waiting, state.delivered, state.given_up


async def step(outbox: Outbox, taker: Taker) -> int:
    return await outbox._step(taker)


async def test_between_two_tries_the_pause_doubles_up_to_a_bound_and_then_it_is_given_up() -> None:
    taker = Taker(*[AWAY] * 15)
    async with outbox_over(taker, tries=15) as (outbox, store, clock):
        pauses = []
        while (await stand(store) if taker.letters else (1, 0, 0))[0]:
            before = len(taker.letters)
            await step(outbox, taker)
            assert len(taker.letters) == before + 1
            left_ms = await step(outbox, taker)
            assert len(taker.letters) == before + 1, "it is left alone meanwhile"
            pauses.append(left_ms)
            clock.at_ms += left_ms
        assert await stand(store) == (0, 0, 1)
    assert pauses[:4] == [FIRST_PAUSE_MS, 2_000, 4_000, 8_000]
    assert max(pauses) == LONGEST_PAUSE_MS
    assert len(taker.letters) == 15


async def test_a_receiver_that_is_away_is_not_asked_for_each_notice_in_turn() -> None:
    taker = Taker(AWAY)
    async with outbox_over(taker, notices=3) as (outbox, _, clock):
        await step(outbox, taker)
        assert await step(outbox, taker) == FIRST_PAUSE_MS
        clock.at_ms += FIRST_PAUSE_MS
        for _ in range(4):
            await step(outbox, taker)
    assert taker.letters == ["n0", "n0", "n1", "n2"], "in order, too"


async def test_one_that_is_refused_holds_up_no_other() -> None:
    taker = Taker(REFUSED)
    async with outbox_over(taker, notices=2) as (outbox, store, clock):
        for _ in range(3):
            await step(outbox, taker)
        assert taker.letters == ["n0", "n1"]
        clock.at_ms += FIRST_PAUSE_MS
        await step(outbox, taker)
        await step(outbox, taker)
        assert await stand(store) == (0, 2, 0)


async def test_a_receiver_is_left_alone_as_long_as_it_says() -> None:
    taker = Taker(Receipt("away", "it answered 429", 90_000))
    async with outbox_over(taker) as (outbox, _, _):
        await step(outbox, taker)
        assert await step(outbox, taker) == 90_000


async def test_what_waited_for_a_week_is_given_up_unsaid() -> None:
    taker = Taker()
    async with outbox_over(taker) as (outbox, store, clock):
        clock.at_ms += TOO_OLD_MS + 1
        await step(outbox, taker)
        assert await stand(store) == (0, 0, 1)
    assert not taker.letters


async def test_of_too_many_that_wait_the_oldest_are_given_up() -> None:
    taker = Taker(AWAY)
    async with outbox_over(taker, notices=MOST_WAITING + 7) as (outbox, store, _):
        await step(outbox, taker)
        assert await stand(store) == (MOST_WAITING, 0, 7)


async def test_a_target_is_told_without_anybody_looking_and_stops_when_it_is_to() -> None:
    taker = Taker()
    async with outbox_over(taker, notices=2) as (outbox, store, _):
        outbox.watch()
        await asyncio.wait_for(taker.told.wait(), 5)
        await outbox.stop()
        assert await stand(store) == (0, 2, 0)
        assert (await outbox.state())["taker"]["delivered"] == 2  # type: ignore[index, call-overload]  # an object


async def test_two_targets_are_told_and_one_that_fails_holds_not_the_other() -> None:
    async with receiving() as receiver:
        receiver.answers.extend([answer(500)] * 20)
        command = json.dumps(["there-is-no-such-program"])
        async with told(receiver, command=command) as tools:
            await tools.ok("graph_create", spec=keeping())
            await tools.ended("keep")
            await receiver.heard(1)
            state: Any = await tools.deps.outbox.state()  # type: ignore[union-attr]  # it is set up
        assert set(state) == {"webhook", "command"}
        assert state["webhook"]["waiting"] == state["command"]["waiting"] == 1


def test_every_kind_is_a_name_of_two_parts() -> None:
    assert all(kind.count(".") == 1 for kind in KINDS)


@pytest.mark.parametrize("status", [500, 429])
async def test_after_a_failure_it_is_told_again_with_the_same_id(status: int) -> None:
    async with receiving() as receiver:
        receiver.answers.append(answer(status))
        async with told(receiver) as tools:
            await tools.ok("graph_create", spec=keeping())
            await tools.ended("keep")
            first, second = await receiver.heard(2)  # a second later
    assert first.json == second.json
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
