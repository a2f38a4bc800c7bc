"""On a system without Unix's own things everything is there all the same: what "written for Windows" rests on."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.council import write_script
from tests.mcp_server.fronts import fronts
from tests.mcp_server.process import initialize
from tests.system.elsewhere_process import PATH, python

IMPORTS = """
import importlib, os, pkgutil, select, signal, socket, sys
import agent_graph
for gone in ((socket, "AF_UNIX"), (select, "poll"), (os, "fork"), (os, "getuid"), (signal, "SIGHUP")):
    assert not hasattr(*gone), gone
names = [found.name for found in pkgutil.walk_packages(agent_graph.__path__, "agent_graph.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
from agent_graph.cli.main import main
sys.argv = ["agent-graph", "--help"]
main()
"""


def test_every_module_is_imported_and_the_command_helps() -> None:
    done = python("-c", IMPORTS)
    assert done.returncode == 0, done.stderr[-2_000:]
    count, _, said = done.stdout.partition("\n")
    assert int(count) > 300
    assert said.startswith("Usage: agent-graph")


def test_a_council_runs_and_the_doctor_finds_the_folder_sound(tmp_path: Path) -> None:
    folder, more = str(tmp_path / "data"), {"AGENT_GRAPH_SCRIPT": str(write_script(tmp_path / "script.json"))}
    ran = python("-m", "agent_graph", "run", "parallel_council", "A question?", "--data-dir", folder, more=more)
    assert ran.returncode == 0, ran.stderr[-2_000:]
    assert ran.stdout.strip()
    looked = python("-m", "agent_graph", "doctor", "--data-dir", folder, "--json", more=more)
    assert looked.returncode == 0, looked.stdout + looked.stderr[-2_000:]
    assert json.loads(looked.stdout)["ok"] is True
    assert not [path for path in (tmp_path / "data").iterdir() if path.suffix in (".sock", ".door")]


async def test_an_assistant_is_served_through_a_front_and_a_daemon(tmp_path: Path) -> None:
    script = write_script(tmp_path / "script.json")
    async with fronts(script, tmp_path / "data", {"PYTHONPATH": PATH}) as start, start() as client:
        await client.send(*initialize())
        assert (await client.answer(0))["result"]["serverInfo"]["name"] == "agent-graph"
        assert (await client.tool(1, "graph_list"))["ok"]
        assert {path.name for path in start.folder.glob("*.door")} == {"mcp.door", "owner.door"}
        assert not list(start.folder.glob("*.sock"))
        assert await client.end_of_input() == 0


async def test_one_is_served_in_process_too_and_a_signal_ends_it(tmp_path: Path) -> None:
    script = write_script(tmp_path / "script.json")
    async with fronts(script, tmp_path / "data", {"PYTHONPATH": PATH}) as start, start("--in-process") as client:
        await client.ready()
        assert (await client.tool(1, "graph_list"))["ok"]
        client.process.terminate()
        assert await client.gone() == 0
