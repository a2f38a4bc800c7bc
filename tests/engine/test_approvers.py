"""Approvers prove to be a person by a secret that is kept nowhere, and guessing it is slow."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from agent_graph import errors
from agent_graph.engine import approvers as module
from agent_graph.engine.approvers import FILE_NAME, FREE_TRIES, LOCKED_MS, Approvers, Proof

NOW = 1_000_000
ADA, BOB = Proof("Ada", "correct horse"), Proof("bob", "battery staple")


@pytest.fixture
def approvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Approvers:
    monkeypatch.setattr(module, "_COST", {"n": 2**4, "r": 8, "p": 1})  # the cost is kept with each hash
    return Approvers(tmp_path / "data")


async def test_a_name_and_its_secret_prove_a_person_whatever_the_case_of_the_name(approvers: Approvers) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    assert await approvers.names() == ("Ada",)
    assert await approvers.prove(Proof("ADA", ADA.secret), now_ms=NOW) == "Ada"
    for wrong in (Proof("Ada", "battery staple"), Proof("Ada", ""), Proof("eve", ADA.secret)):
        with pytest.raises(errors.ApproverSecretWrong):
            await approvers.prove(wrong, now_ms=NOW)


async def test_the_file_is_private_and_holds_no_secret(approvers: Approvers, tmp_path: Path) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    path = tmp_path / "data" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ADA.secret not in path.read_text(encoding="utf-8")
    assert ADA.secret not in repr(ADA)


async def test_the_first_approver_needs_nobody_and_each_further_one_somebody_who_vouches(approvers: Approvers) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    with pytest.raises(errors.ApproverRequired):
        await approvers.add(BOB, voucher=None, now_ms=NOW)
    with pytest.raises(errors.ApproverSecretWrong):
        await approvers.add(BOB, voucher=Proof("Ada", "a guess of mine"), now_ms=NOW)
    with pytest.raises(errors.ApproverRequired):
        await approvers.remove("ada", voucher=None, now_ms=NOW)
    assert await approvers.names() == ("Ada",)
    await approvers.add(BOB, voucher=ADA, now_ms=NOW)
    await approvers.remove("ADA", voucher=BOB, now_ms=NOW)
    assert await approvers.names() == ("bob",)
    with pytest.raises(errors.ApproverNotFound):
        await approvers.remove("Ada", voucher=BOB, now_ms=NOW)


async def test_an_approver_gets_another_secret(approvers: Approvers) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    await approvers.add(Proof("ada", "another one"), voucher=ADA, now_ms=NOW)
    assert await approvers.names() == ("ada",)
    with pytest.raises(errors.ApproverSecretWrong):
        await approvers.prove(ADA, now_ms=NOW)


@pytest.mark.parametrize("who", [Proof("", "long enough"), Proof("a b", "long enough"), Proof("ada", "short"),
                                 Proof("x" * 65, "long enough"), Proof("ada", "x" * 1_001)])  # fmt: skip
async def test_a_name_is_plain_and_a_secret_is_long_enough(approvers: Approvers, who: Proof) -> None:
    with pytest.raises(errors.InvalidArgument):
        await approvers.add(who, voucher=None, now_ms=NOW)
    assert await approvers.names() == ()


@pytest.mark.parametrize("name", ["Ada", "nobody"])
async def test_guessing_is_locked_for_longer_each_time_also_in_another_process(
    approvers: Approvers, tmp_path: Path, name: str
) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    guess = Proof(name, "a guess of mine")
    for _ in range(FREE_TRIES):
        with pytest.raises(errors.ApproverSecretWrong) as caught:
            await approvers.prove(guess, now_ms=NOW)
        assert not caught.value.details
    for later_ms in (0, LOCKED_MS - 1):
        with pytest.raises(errors.ApproverSecretWrong) as caught:
            await Approvers(tmp_path / "data").prove(Proof(name, ADA.secret), now_ms=NOW + later_ms)
        assert caught.value.details["retry_at_ms"] == NOW + LOCKED_MS
    with pytest.raises(errors.ApproverSecretWrong):
        await approvers.prove(guess, now_ms=NOW + LOCKED_MS)
    with pytest.raises(errors.ApproverSecretWrong) as caught:
        await approvers.prove(guess, now_ms=NOW + LOCKED_MS + 1)
    assert caught.value.details["retry_at_ms"] == NOW + LOCKED_MS + 2 * LOCKED_MS
    if name == "Ada":
        assert await approvers.prove(ADA, now_ms=NOW + 3 * LOCKED_MS) == "Ada"
        with pytest.raises(errors.ApproverSecretWrong) as caught:
            await approvers.prove(guess, now_ms=NOW + 3 * LOCKED_MS)
        assert not caught.value.details  # counted from the beginning again


async def test_guesses_at_once_are_counted_one_by_one(approvers: Approvers) -> None:
    await approvers.add(ADA, voucher=None, now_ms=NOW)
    guesses = (approvers.prove(Proof("Ada", f"a guess {n}"), now_ms=NOW) for n in range(20))
    said = await asyncio.gather(*guesses, return_exceptions=True)
    assert sum("retry_at_ms" not in getattr(one, "details", {}) for one in said) == FREE_TRIES


@pytest.mark.parametrize("text", ["", "[]", '{"approvers": {}}', '{"approvers": [], "tries": {}}', "\udc80"])
async def test_a_book_that_cannot_be_read_opens_no_gate(approvers: Approvers, tmp_path: Path, text: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE_NAME).write_bytes(text.encode("utf-8", "surrogateescape"))
    for asked in (approvers.names(), approvers.prove(ADA, now_ms=NOW), approvers.add(ADA, voucher=None, now_ms=NOW)):
        with pytest.raises(errors.StoreUnusable):
            await asked


async def test_a_folder_that_keeps_nothing_has_no_approvers() -> None:
    nowhere = Approvers()
    assert await nowhere.names() == ()
    with pytest.raises(errors.StoreUnusable):
        await nowhere.prove(ADA, now_ms=NOW)
