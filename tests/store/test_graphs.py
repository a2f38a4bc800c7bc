"""The contract of graphs: names, immutable versions, hiding; the same in memory and in a file."""

from __future__ import annotations

import pytest

from agent_graph.errors import GraphInUse, GraphNotFound, GraphVersionConflict, GraphVersionNotFound
from agent_graph.store.base import Commit
from agent_graph.store.sqlite import SqliteStore
from tests.store.rows import AT_MS, GRAPH, begin, graph, run, start, whole_list


async def put(store: SqliteStore, version: str = "sha256:v1", **how: object) -> bool:
    row = graph(version, updated_at_ms=AT_MS + len(version))
    options = {"overwrite": False, "expected_version": None, **how}
    return await store.graphs.put(row, **options)  # type: ignore[arg-type]


async def test_a_graph_is_read_back_as_it_was_put(store: SqliteStore) -> None:
    assert await store.graphs.put(GRAPH, overwrite=False, expected_version=None) is True
    assert await store.graphs.get("council") == GRAPH
    assert await store.graphs.get("council", "sha256:v1") == GRAPH


async def test_putting_the_current_version_again_changes_nothing(store: SqliteStore) -> None:
    await store.graphs.put(GRAPH, overwrite=False, expected_version=None)
    again = graph(description="another text", updated_at_ms=AT_MS + 99)
    assert await store.graphs.put(again, overwrite=True, expected_version=None) is False
    assert await store.graphs.get("council") == GRAPH


async def test_another_version_needs_a_word(store: SqliteStore) -> None:
    await put(store, "v1")
    for how in ({}, {"expected_version": "v0"}, {"expected_version": "v0", "overwrite": True}):
        with pytest.raises(GraphVersionConflict) as refused:
            await put(store, "v2", **how)
        assert refused.value.code == "GRAPH_VERSION_CONFLICT"
        assert refused.value.details["current_version"] == "v1"
    assert [row.graph_version for row in await store.graphs.versions("council")] == ["v1"]
    assert await put(store, "v2", overwrite=True) is True
    assert await put(store, "v3", expected_version="v2") is True
    assert (await store.graphs.get("council")).graph_version == "v3"


async def test_a_version_expected_where_there_is_no_graph_is_a_conflict(store: SqliteStore) -> None:
    with pytest.raises(GraphVersionConflict):
        await put(store, "v1", expected_version="v0")
    with pytest.raises(GraphNotFound):
        await store.graphs.get("council")


async def test_old_versions_stay_readable_newest_first(store: SqliteStore) -> None:
    for version in ("v1", "v2", "v3"):
        await put(store, version, overwrite=True)
    await put(store, "v1", overwrite=True)
    assert (await store.graphs.get("council")).graph_version == "v1"
    assert (await store.graphs.get("council", "v2")).spec == GRAPH.spec
    rows = await store.graphs.versions("council")
    assert [row.graph_version for row in rows] == ["v3", "v2", "v1"]
    assert all(row.spec == {} and row.compiled == {} for row in rows)


async def test_what_is_not_there_is_not_found(store: SqliteStore) -> None:
    for reading in (store.graphs.get, store.graphs.versions, store.graphs.delete):
        with pytest.raises(GraphNotFound) as refused:
            await reading("nothing")
        assert refused.value.code == "GRAPH_NOT_FOUND"
    with pytest.raises(GraphNotFound):
        await store.graphs.get("nothing", "v1")
    await put(store, "v1")
    with pytest.raises(GraphVersionNotFound):
        await store.graphs.get("council", "v2")


async def test_a_deleted_graph_is_hidden_and_its_versions_stay(store: SqliteStore) -> None:
    await put(store, "v1")
    await store.graphs.delete("council")
    with pytest.raises(GraphNotFound):
        await store.graphs.get("council")
    with pytest.raises(GraphNotFound):
        await store.graphs.delete("council")
    assert (await store.graphs.get("council", "v1")).graph_version == "v1"
    assert await store.graphs.list() == ((), None)
    with pytest.raises(GraphVersionConflict):
        await put(store, "v2", expected_version="v1")
    assert await put(store, "v2") is True
    assert (await store.graphs.get("council")).graph_version == "v2"
    await store.graphs.delete("council")
    assert await put(store, "v2") is True
    assert (await store.graphs.get("council")).graph_version == "v2"


@pytest.mark.parametrize("status", ["accepted", "running", "waiting", "interrupted"])
async def test_a_graph_with_live_runs_cannot_be_deleted(store: SqliteStore, status: str) -> None:
    await begin(store)
    await store.runs.commit(start(status=status))
    with pytest.raises(GraphInUse) as refused:
        await store.graphs.delete("council")
    assert refused.value.code == "GRAPH_IN_USE"
    assert refused.value.details["run_ids"] == ["run-1"]
    assert await store.graphs.get("council") == GRAPH
    await store.runs.commit(Commit(run(status="cancelled"), 1, ()))
    await store.graphs.delete("council")
    assert (await store.runs.get("run-1")).graph_version == "sha256:v1"


async def test_graphs_are_listed_by_id_and_found_by_a_part_of_id_or_description(store: SqliteStore) -> None:
    for name, text in (("b", "Écrire"), ("a", "Plan and critique"), ("c_100%", ""), ("d", "plans")):
        row = graph(graph_id=name, description=text)
        await store.graphs.put(row, overwrite=False, expected_version=None)

    async def ids(query: str) -> list[str]:
        rows, _ = await store.graphs.list(query=query)
        return [row.graph_id for row in rows]

    assert await ids("") == ["a", "b", "c_100%", "d"]
    assert await ids("PLAN") == ["a", "d"]
    assert await ids("100%") == ["c_100%"]
    assert await ids("%") == ["c_100%"]
    assert await ids("Éc") == ["b"]
    rows, _ = await store.graphs.list()
    assert all(row.spec == {} and row.compiled == {} for row in rows)


async def test_pages_of_graphs_hold_still_while_graphs_are_added_and_deleted(store: SqliteStore) -> None:
    for name in "bdfh":
        await store.graphs.put(graph(graph_id=name), overwrite=False, expected_version=None)
    first, cursor = await store.graphs.list(limit=2)
    await store.graphs.put(graph(graph_id="a"), overwrite=False, expected_version=None)
    await store.graphs.put(graph(graph_id="e"), overwrite=False, expected_version=None)
    await store.graphs.delete("d")
    second, end = await store.graphs.list(limit=5, cursor=cursor)
    assert [row.graph_id for row in (*first, *second)] == ["b", "d", "e", "f", "h"]
    assert end is None
    assert [len(page) for page in await whole_list(store.graphs.list, limit=2)] == [2, 2, 1]
