"""State as contributions: what a past sees, the current value, conflicts, and what becomes of an event's values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agent_graph.core.contributions import Writer, slot_of
from agent_graph.core.effects import MISSING, Write
from agent_graph.core.merge import State
from agent_graph.core.statepath import overlap


class Writers:
    """A state written to by name; a writer has seen what its `saw` names have, and them."""

    def __init__(self, **reducers: str) -> None:
        self.state = State(reducers)
        self.pasts: dict[str, int] = {"": 0}
        self.tips: dict[str, tuple[int, ...]] = {"": ()}
        self.depths: dict[str, int] = {"": 0}

    def add(
        self, name: str, *written: Write, after: str = "", node: int = 0, nth: int = 1, current: Any = MISSING
    ) -> int:
        names = after.split() or [""]
        past, depth = 0, 1 + max(self.depths[one] for one in names)
        for one in names:
            past |= self.pasts[one]
        tips = self.state.merge_tips(tip for one in names for tip in self.tips[one])
        saw = self.state.seen(tips)
        bit = self.state.add(Writer(node, (depth, node, nth), name, past, saw, current), written)
        self.pasts[name], self.depths[name] = past | bit, depth
        self.tips[name] = tips if current is MISSING else (self.state.next - 1,)
        return bit

    def past(self, names: str) -> int:
        past = 0
        for one in names.split():
            past |= self.pasts[one]
        return past

    def read(self, path: str, names: str) -> Any:
        return self.state.read(slot_of(tuple(path.split(".")))[0], self.past(names))

    def current(self, names: str) -> Any:
        tips = self.state.merge_tips(tip for one in names.split() for tip in self.tips[one])
        return self.state.current(tips)

    def met(self, *parts: str) -> list[tuple[str, str, tuple[str, ...]]]:
        return [(c.key, c.winner, c.losers) for c in self.state.conflicts([self.past(part) for part in parts])]

    def compact(self, names: str) -> None:
        assert self.past(names) == self.state.everything(), "only when one token has it all"
        self.state.compact(self.state.merge_tips(tip for one in names.split() for tip in self.tips[one]))
        self.pasts = dict.fromkeys(self.pasts, 0)
        self.tips = dict.fromkeys(self.tips, ())


def put(path: str, value: Any = 1) -> Write:
    return Write("set", tuple(path.split(".")), value)


def operand(key: str, value: Any) -> Write:
    return Write("operand", (key,), value)


def delete(path: str) -> Write:
    return Write("delete", tuple(path.split(".")))


def replace(key: str, value: Any) -> Write:
    return Write("replace", (key,), value)


# -- places --------------------------------------------------------------------------------------------------------


def test_the_engines_books_have_a_slot_a_node_and_other_keys_one_each() -> None:
    assert slot_of(("outputs", "a", "b")) == (("outputs", "a"), ("b",))
    assert slot_of(("loops", "a")) == (("loops", "a"), ())
    assert slot_of(("outputs",)) == ("outputs", ())
    assert slot_of(("a", "b", "c")) == ("a", ("b", "c"))


def test_paths_overlap_when_one_leads_to_the_other() -> None:
    assert overlap((), ("a",))
    assert overlap(("a", "b"), ("a",))
    assert not overlap(("a", "b"), ("a", "c"))


# -- reading -------------------------------------------------------------------------------------------------------


def test_nobody_sees_what_a_sibling_writes_until_they_meet() -> None:
    at = Writers()
    at.add("a", put("k", "a"))
    at.add("b", put("k", "b"), put("other", 2), node=1)
    assert [at.read("k", past) for past in ("", "a", "b", "a b")] == [MISSING, "a", "b", "b"]
    assert at.read("other", "a") is MISSING


def test_the_order_of_contributions_is_that_of_depth_node_and_firing_however_they_came() -> None:
    at = Writers(log="append")
    at.add("late", operand("log", "late"), node=9)
    at.add("early", operand("log", "early"), node=1)
    at.add("again", operand("log", "again"), node=1, nth=2)
    at.add("deep", operand("log", ["de", "ep"]), after="early", node=0)
    assert at.read("log", "late early again deep") == ["early", "again", "late", "de", "ep"]


def test_a_reducer_folds_contributions_and_counts_nothing_twice() -> None:
    at = Writers(log="append", sum="add", all="merge", last="last_write_wins")
    at.state.base = {"log": ["x"], "sum": 1, "all": {"a": {"x": 1}}, "last": 0}
    at.add("a", operand("log", "a"), operand("sum", 2), operand("all", {"a": {"y": 1}}), operand("last", "a"))
    at.add("b", operand("log", ["b"]), operand("sum", 4), operand("all", {"b": 1}), operand("last", "b"), node=1)
    assert at.read("log", "a b") == ["x", "a", "b"]
    assert at.read("sum", "a b") == 7
    assert at.read("all", "a b") == {"a": {"x": 1, "y": 1}, "b": 1}
    assert at.read("last", "a b") == "b"


def test_replace_and_delete_begin_a_reducers_key_anew() -> None:
    at = Writers(log="append")
    at.state.base["log"] = ["base"]
    at.add("a", operand("log", "a"))
    at.add("b", replace("log", ["b"]), operand("log", "c"), after="a")
    at.add("d", delete("log"), after="b")
    at.add("e", operand("log", "e"), after="d")
    assert [at.read("log", past) for past in ("a", "b", "d", "e")] == [["base", "a"], ["b", "c"], MISSING, ["e"]]


def test_writes_below_a_key_and_deletes_leave_the_rest() -> None:
    at = Writers()
    at.state.base["k"] = {"a": 1, "b": 2}
    at.add("x", put("k.a.deep", 3), delete("k.b"), delete("k.nothing"), delete("none.at.all"), put("n.e.w", 4))
    assert at.read("k", "x") == {"a": {"deep": 3}}
    assert at.read("n", "x") == {"e": {"w": 4}}
    assert at.read("none", "x") is MISSING
    assert at.state.base["k"] == {"a": 1, "b": 2}


def test_a_later_concurrent_write_below_a_text_stands() -> None:
    at = Writers()
    at.add("a", put("k", "text"))
    at.add("b", put("k.x", 1), node=1)
    assert at.read("k", "a b") == {"x": 1}


def test_the_whole_state_is_the_users_keys_in_any_order_of_writing() -> None:
    one, other = Writers(), Writers()
    for at, names in ((one, "ab"), (other, "ba")):
        at.state.base["given"] = 0
        for name in names:
            at.add(name, put(f"k{name}"), put(f"outputs.{name}"), node=ord(name))
    assert one.state.whole(one.past("a b")) == other.state.whole(other.past("a b")) == {"given": 0, "ka": 1, "kb": 1}
    assert one.state.whole(one.past("a")) == {"given": 0, "ka": 1}


def test_a_root_holds_as_much_as_a_lookup_can_touch() -> None:
    at = Writers()
    at.state.base = {"a": {"b": 1}, "a.b": 2, "z": 3, "": 4}
    at.add("w", put("outputs.n", 5), put("outputs.n.x", 6), put("loops.l", 7))
    past = at.past("w")
    assert at.state.root("a.b.c", past) == {"a": {"b": 1}, "a.b": 2}
    assert at.state.root("/a.b", past) == {"a.b": 2}
    assert at.state.root("nothing", past) == {}
    assert at.state.root("outputs", past) == {"outputs": {"n": {"x": 6}}}
    assert at.state.root("outputs.n.x", past) == {"outputs": {"n": {"x": 6}}}
    assert at.state.root("outputs.other", past) == {"outputs": {}}
    assert at.state.root("loops", 0) == {"loops": {}}


def test_a_write_goes_to_an_existing_flat_key() -> None:
    at = Writers()
    at.state.base["a.b"] = 1
    assert at.state.resolve("a.b", 0) == ("a.b",)
    assert at.state.resolve("a.c", 0) == ("a", "c")


# -- the base ------------------------------------------------------------------------------------------------------


def test_what_became_the_base_reads_the_same_and_leaves_nothing_behind() -> None:
    at = Writers(log="append")
    at.state.base["gone"] = 1
    at.add("a", operand("log", "a"), put("k.x", 1), delete("gone"), current="c")
    at.compact("a")
    assert (at.state.base, at.state.base_current) == ({"log": ["a"], "k": {"x": 1}}, "c")
    assert (at.state.journal, at.state.writers, at.state.everything()) == ({}, {}, 0)
    at.add("b", operand("log", "b"), current="d")
    assert at.read("log", "b") == ["a", "b"]
    at.state.compact(())
    at.state.compact(())  # nothing since
    assert at.state.base_current == "c", "seen from where nobody wrote one"


def test_no_value_of_an_event_is_ever_changed() -> None:
    at = Writers(log="append", all="merge")
    given: list[Any] = [["x"], {"a": {"b": {}}}]
    facts: list[Any] = [[i, {"a": {"b": {str(i): [i]}}}] for i in range(5)]
    before = copy.deepcopy([given, facts])
    at.state.base = {"log": given[0], "all": given[1]}
    handed_out = []
    for i, (one, other) in enumerate(facts):
        at.add(f"w{i}", operand("log", [one]), operand("all", other))
        at.compact(f"w{i}")
        if i % 2:
            handed_out.append(copy.deepcopy((at.read("log", ""), seen := at.read("all", ""))))
            handed_out.append((at.read("log", ""), seen))
    assert [given, facts] == before
    assert handed_out[0] == handed_out[1] == ((["x", 0, 1]), {"a": {"b": {"0": [0], "1": [1]}}})
    assert at.read("log", "") == ["x", 0, 1, 2, 3, 4]


def test_what_a_reader_holds_does_not_change_when_the_next_contribution_becomes_the_base() -> None:
    at = Writers(log="append")
    at.add("a", operand("log", "a"))
    at.compact("a")
    assert at.state.owned == {"log"}
    at.add("b", operand("log", "b"))
    seen = at.read("log", "")
    at.compact("b")
    assert (seen, at.read("log", "")) == (["a"], ["a", "b"])


def test_a_list_nobody_holds_is_extended_in_place() -> None:
    at = Writers(log="append")
    at.add("a", operand("log", "a"))
    at.compact("a")
    kept = at.state.base["log"]
    at.add("b", operand("log", "b"))
    at.compact("b")
    assert at.state.base["log"] is kept


# -- last writers --------------------------------------------------------------------------------------------------


def test_the_last_writer_of_a_path_is_the_last_in_order_also_once_it_is_in_the_base() -> None:
    at = Writers()
    at.add("later", put("k", {"x": 1}), node=5)
    at.add("earlier", put("k.x", 2), node=1)  # written afterwards, but before in the order
    at.add("beside", put("k.y", 3), after="later earlier", node=3)
    places = [(), ("x",), ("y",), ("z",)]
    before = [at.state.last_writer("k", rest, at.past("beside")) for rest in places]
    assert before == [(2, 3), (0, 5), (2, 3), (0, 5)]
    at.compact("beside")
    assert [at.state.last_writer("k", rest, 0) for rest in places] == before
    assert at.state.last_writer("other", (), 0) is None
    at.add("whole", put("k", 0))
    at.compact("whole")
    assert at.state.base_writers["k"] == {(): (3, 0)}, "a write of all of it makes the others' forgotten"


def test_a_path_written_again_moves_behind_the_others() -> None:
    at = Writers()
    for nth, path in enumerate(("k.x", "k.y", "k.x"), start=1):
        at.add(f"w{nth}", put(path), node=nth)
        at.compact(f"w{nth}")
    assert at.state.last_writer("k", (), 0) == (2, 3)


# -- the current value ---------------------------------------------------------------------------------------------


def test_the_current_value_is_the_write_all_others_descend_from() -> None:
    at = Writers()
    at.state.base_current = "input"
    at.add("a", current="a")
    at.add("b", after="a", current="b")
    at.add("c", put("k"), after="a")
    assert [at.current(names) for names in ("", "a", "b", "c", "b c")] == ["input", "a", "b", "a", "b"]


def test_of_concurrent_current_values_the_nearest_common_one_is_seen() -> None:
    at = Writers()
    at.state.base_current = "input"
    at.add("a", current="a")
    at.add("b", after="a", current="b", node=1)
    at.add("c", after="a", current="c", node=2)
    at.add("d", after="c", current="d", node=3)
    at.add("x", current="x", node=4)
    assert at.current("b d") == "a"
    assert at.current("b x") == "input"
    at.add("e", after="b d", current="e")
    assert (at.current("e"), at.current("e c")) == ("e", "e")


def test_a_current_value_before_the_base_is_the_base() -> None:
    at = Writers()
    at.add("a", current="a")
    at.compact("a")
    at.add("b", current="b", node=1)
    at.add("c", current="c", node=2)
    assert at.current("b c") == "a"


# -- conflicts -----------------------------------------------------------------------------------------------------


def test_concurrent_writes_of_one_path_conflict_where_they_meet_and_the_later_in_order_wins() -> None:
    at = Writers()
    at.add("late", put("k"), node=3)
    at.add("early", put("k"), node=1)
    at.add("middle", put("k"), node=2)
    assert at.met("late", "early", "middle") == [("k", "late", ("early", "middle"))]


@pytest.mark.parametrize(("one", "other", "key"), [("k", "k.x", "k.x"), ("k.x.y", "k", "k"), ("k.x", "k.x", "k.x")])
def test_paths_of_which_one_leads_to_the_other_conflict(one: str, other: str, key: str) -> None:
    at = Writers()
    at.add("a", put(one), node=1)
    at.add("b", put(other), node=2)
    assert at.met("a", "b") == [(key, "b", ("a",))]


def test_paths_beside_one_another_do_not_conflict() -> None:
    at = Writers()
    at.add("a", put("k.x"), node=1)
    at.add("b", put("k.y"), put("j"), node=2)
    assert at.met("a", "b") == []


def test_every_place_where_a_write_was_overwritten_is_told() -> None:
    at = Writers()
    at.add("all", put("k", {}), node=1)
    at.add("x", put("k.x"), node=2)
    at.add("y", put("k.y"), node=3)
    assert at.met("all", "x", "y") == [("k.x", "x", ("all",)), ("k.y", "y", ("all",))]


def test_one_writer_can_lose_at_several_paths() -> None:
    at = Writers()
    at.add("both", put("k.x"), put("k.y"), node=1)
    at.add("x", put("k.x"), node=2)
    at.add("y", put("k.y"), node=3)
    assert at.met("both", "x", "y") == [("k.x", "x", ("both",)), ("k.y", "y", ("both",))]


def test_a_writer_does_not_conflict_with_itself() -> None:
    at = Writers()
    at.add("a", put("k"), put("k.x"), node=1)
    at.add("b", put("k.y"), node=2)
    assert at.met("a", "b") == [("k.y", "b", ("a",))]


def test_what_was_overwritten_already_is_told_once() -> None:
    at = Writers()
    for place, path in enumerate(("k.x", "k.x.y", "k")):
        at.add(f"w{place}", put(path), node=place)
    assert at.met("w0", "w1", "w2") == [("k", "w2", ("w0", "w1"))]


def test_contributions_to_a_reducers_key_conflict_only_with_a_replace_or_delete() -> None:
    at = Writers(log="append", last="last_write_wins")
    at.add("a", operand("log", 1), operand("last", 1), put("last.x"), node=1)
    at.add("b", operand("log", 2), operand("last", 2), put("last.x"), node=2)
    at.add("c", replace("log", []), delete("last"), node=3)
    assert at.met("a", "b") == []
    assert at.met("a", "c") == [("last", "c", ("a",)), ("log", "c", ("a",))]
    assert at.met("a b", "c") == [("last", "c", ("a", "b")), ("log", "c", ("a", "b"))]


def test_writes_that_follow_one_another_do_not_conflict() -> None:
    at = Writers()
    at.add("a", put("k"), node=1)
    at.add("b", put("k"), after="a", node=2)
    at.add("c", put("j"), node=3)
    assert at.met("b", "a c") == []


def test_writes_that_met_before_are_not_told_again() -> None:
    at = Writers()
    at.add("a", put("k"), node=1)
    at.add("b", put("k"), node=2)
    at.add("c", put("k"), node=3)
    assert at.met("a b", "b") == []
    assert at.met("a b", "c") == [("k", "c", ("a", "b"))]
    assert at.met("a b", "b c") == [("k", "c", ("a",))]


def test_what_the_books_hold_of_a_node_is_its_own_and_no_conflict() -> None:
    at = Writers()
    at.add("a", put("loops.l"), node=1)
    at.add("b", put("loops.l"), node=1)
    assert at.met("a", "b") == []
