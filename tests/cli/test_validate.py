"""`agent-graph validate`: places in the file, forms for others, and repairs."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

JSON = """{
  "name": "g", "entry": "a",
  "output_key": "reprot",
  "nodes": [
    {"id": "a", "type": "llm", "prompt": "\\u00e4 {run_input}", "config": {"output_key": "draft"}},
    {"id": "b", "type": "llm", "prompt": "Review {draf}",
     "config": {"output_key": "report"}}
  ],
  "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "END"}]
}
"""
YAML = """# the graph of a test
name: g
entry: a
output_key: reprot   # misspelt
nodes:
  - id: a
    type: llm
    prompt: "{run_input}"
    config: {output_key: draft}
  - id: b
    type: llm
    prompt: Review {draf}
    config:
      output_key: report   # the result
edges:
  - {from: a, to: b}
  - {from: b, to: END}
"""
BILLION = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghi")
)
File = Callable[[str, str], str]


@pytest.fixture
def written(tmp_path: Path) -> File:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def places(done: Any, file: str) -> dict[str, str]:
    """By code: line and column."""
    lines = [line for line in done.err.splitlines() if line.startswith(file)]
    return {line.split()[2]: line.removeprefix(file + ":").split(" ")[0].rstrip(":") for line in lines}


def test_every_finding_stands_at_its_line_and_column(cli: Cli, written: File) -> None:
    file = written("g.json", JSON)
    done = cli("validate", file)
    assert done.code == 0
    assert places(done, file) == {"PROMPT_PLACEHOLDER_UNKNOWN": "6:42", "OUTPUT_NEVER_WRITTEN": "3:17",
                                  "OUTPUT_NEVER_READ": "7:31"}  # fmt: skip
    file = written("g.yaml", YAML)
    assert places(cli("validate", file), file) == {
        "PROMPT_PLACEHOLDER_UNKNOWN": "12:13", "OUTPUT_NEVER_WRITTEN": "4:13", "OUTPUT_NEVER_READ": "14:19",
    }  # fmt: skip


def test_strict_takes_no_warnings_and_structure_looks_for_none(cli: Cli, written: File) -> None:
    file = written("g.json", JSON)
    assert cli("validate", file, "--level", "strict").code == 1
    done = cli("validate", file, "--level", "structure")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{file} is valid: as far as its structure goes\n".encode()


def test_json_has_the_envelope_with_lines(cli: Cli, written: File) -> None:
    done = cli("validate", written("g.json", JSON), "--format", "json")
    found = [(issue["line"], issue["column"]) for issue in done.json["data"]["issues"]]
    assert found == [(3, 17), (5, 89), (6, 42), (7, 31)]
    assert done.err == ""


def test_sarif_is_a_log_of_one_run(cli: Cli, written: File) -> None:
    file = written("g.json", JSON)
    log = json.loads(cli("validate", file, "--format", "sarif").out)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    first = next(one for one in run["results"] if one["ruleId"] == "PROMPT_PLACEHOLDER_UNKNOWN")
    assert first["ruleId"] == run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "PROMPT_PLACEHOLDER_UNKNOWN"
    assert first["level"] == "warning"
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": file}, "region": {"startLine": 6, "startColumn": 42}}
    broken = JSON.replace('"to": "END"}', '"to": "END"}, {"from": "a", "to": "b"}')
    log = json.loads(cli("validate", written("g.json", broken), "--format", "sarif").out)
    (twice,) = (one for one in log["runs"][0]["results"] if one["ruleId"] == "DUPLICATE_EDGE")
    assert twice["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 9


def test_github_shows_them_at_their_lines(cli: Cli, written: File) -> None:
    file = written("a,b.json", JSON)
    lines = cli("validate", file, "--format", "github").out.decode().splitlines()
    name = file.replace(",", "%2C")
    assert lines[0].startswith(f"::warning file={name},line=3,col=17,title=OUTPUT_NEVER_WRITTEN::")
    assert lines[-1].startswith("::notice ")


@pytest.mark.parametrize("option", [("--format", "xml"), ("--level", "hard")])
def test_an_unknown_form_or_level_is_refused(cli: Cli, written: File, option: tuple[str, str]) -> None:
    done = cli("validate", written("g.json", JSON), *option)
    assert (done.code, done.err.split(":")[0]) == (1, "INVALID_ARGUMENT")


def test_fix_writes_the_file_and_changes_no_more_than_it_says(cli: Cli, written: File) -> None:
    file = written("g.json", JSON)
    Path(file).chmod(0o640)
    done = cli("validate", file, "--fix")
    assert done.code == 0
    assert [line.split(" at ")[0] for line in done.err.splitlines() if line.startswith("repaired")] == [
        "repaired: PROMPT_PLACEHOLDER_UNKNOWN", "repaired: OUTPUT_NEVER_WRITTEN",
    ]  # fmt: skip
    assert Path(file).read_text(encoding="utf-8") == JSON.replace("{draf}", "{draft}").replace("reprot", "report")
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o640
    assert list(Path(file).parent.glob(".g.json*")) == []
    assert cli("validate", file, "--level", "strict").code == 0


def test_fix_keeps_the_comments_of_yaml(cli: Cli, written: File) -> None:
    file = written("g.yml", YAML)
    assert cli("validate", file, "--fix").code == 0
    assert Path(file).read_text(encoding="utf-8") == YAML.replace("{draf}", "{draft}").replace("reprot", "report")


def test_fix_of_standard_input_prints_the_graph_and_nothing_else(cli: Cli) -> None:
    done = cli("validate", "-", "--fix", stdin=JSON.encode())
    assert (done.code, done.json["output_key"]) == (0, "report")


def test_fix_can_write_elsewhere(cli: Cli, written: File, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    file = written("g.json", JSON.replace('"type": "llm", "prompt": "Review', '"type": "lmm", "prompt": "Review'))
    assert cli("validate", file, "--fix", "-o", str(other)).code == 0
    assert json.loads(other.read_text(encoding="utf-8"))["nodes"][1]["type"] == "llm"
    assert "lmm" in Path(file).read_text(encoding="utf-8")


def test_fix_leaves_a_right_file_alone(cli: Cli, written: File) -> None:
    right = JSON.replace("{draf}", "{draft}").replace("reprot", "report")
    file = written("g.json", right)
    before = Path(file).stat().st_mtime_ns
    assert cli("validate", file, "--fix").code == 0
    assert Path(file).stat().st_mtime_ns == before


def test_an_alias_is_not_changed_in_two_places(cli: Cli, written: File) -> None:
    text = YAML.replace("config: {output_key: draft}", "config: &c {output_key: draft}").replace(
        "    config:\n      output_key: report   # the result\n", "    config: *c\n"
    )
    text = text.replace("{draf}", "{run_input}")
    file = written("g.yaml", text.replace("reprot", "draft").replace("{output_key: draft}", "{ouptut_key: draft}"))
    before = Path(file).read_text(encoding="utf-8")
    done = cli("validate", file, "--fix")
    assert "not repaired: UNKNOWN_FIELD" in done.err
    assert Path(file).read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("text", "told"), [
    ("a: 1\na: 2\n", "g.yaml:2:1: the key 'a' is given twice"),
    ("1: 2\n", "g.yaml:1:1: a key is a text; write '1' in quotes"),
    ("? [a]\n: 1\n", "a key is a text"),
    ("a: !!python/object:os.system {}\n", "there are no tags in a graph"),
    ("a: .inf\n", "g.yaml:1:4: .inf is no number of JSON"),
    ("a: 1\n---\nb: 2\n", "there is a second document"),
    ("a: *b\n", "*b names nothing before it"),
    ("<<: {a: 1}\n", "`<<` merges are no part of YAML 1.2"),
    ("a: [1\n", "g.yaml:2:1: "),
    ("a: 1" + "0" * 5_000, "the number is too long"),
    ("[" * 5_000, "nested deeper than 200 levels"),
    ("- a\n", "holds no graph: a graph is an object"),
    ("", "holds no graph"),
    (BILLION, "the document has too many values"),
])  # fmt: skip
def test_yaml_that_is_more_than_json_is_refused(cli: Cli, written: File, text: str, told: str) -> None:
    done = cli("validate", written("g.yaml", text))
    assert (done.code, told in done.err) == (1, True), done.err


def test_yaml_has_the_types_of_json_and_no_surprises(cli: Cli, written: File) -> None:
    text = """
name: g
entry: no
metadata: {no: no, on: on, y: y, date: 2026-11-30, octal: 0o17, sexagesimal: 1:30, under: 1_000, quoted: "true",
           t: true, f: False, n: null, tilde: ~, empty: , i: -7, f1: 1.5, f2: 1e3, f3: .5, s: '5', text: 'two lines'}
nodes: [{id: no, type: passthrough}]
"""
    file = written(
        "g.yaml", text.replace("text: |-\n             two\n             lines\n           ", "text: 'two lines'")
    )
    done = cli("render", file, "--format", "json")
    assert done.code == 0, done.err
    from agent_graph.cli.yaml_documents import read_yaml

    value: Any = read_yaml(Path(file).read_text(encoding="utf-8"), max_depth=20, most=1_000)
    assert value["metadata"] == {
        "no": "no", "on": "on", "y": "y", "date": "2026-11-30", "octal": "0o17", "sexagesimal": "1:30",
        "under": "1_000", "quoted": "true", "t": True, "f": False, "n": None, "tilde": None, "empty": None, "i": -7,
        "f1": 1.5, "f2": 1000.0, "f3": 0.5, "s": "5", "text": "two lines",
    }  # fmt: skip


GATE = """{
  "name": "g", "entry": "gate",
  "nodes": [
    {"id": "gate", "type": "human_approval",
     "config": {"allowed_decisions": ["approve", "reject", "request_changes"]}},
    {"id": "send",   "type": "llm", "propmt": "Send {run_input}"}
  ],
  "edges": [{"from": "gate", "to": "send"}, {"from": "send", "to": "END"}, {"from": "send", "to": "END"}]
}
"""


def test_fix_makes_what_was_announced_and_leaves_remarks_alone(cli: Cli, written: File) -> None:
    file = written("g.json", GATE)
    assert "; --fix makes 2 of the repairs" in cli("validate", file).err
    done = cli("validate", file, "--fix")
    assert "2 repairs made" in done.err
    assert Path(file).read_text(encoding="utf-8") == GATE.replace("propmt", "prompt").replace(
        ', {"from": "send", "to": "END"}]', "]"
    )
    assert "REQUEST_CHANGES_NO_LOOP" in cli("validate", file).err
    cli("validate", file, "--fix-all")
    assert '["approve", "reject"]' in Path(file).read_text(encoding="utf-8")


@pytest.mark.parametrize(("text", "patch", "then"), [
    ('{\n  "a": {"x": 1,  "y": 2},\n  "b": [1,2]\n}', [{"op": "move", "from": "/a/x", "path": "/c"}],
     '{\n  "a": {"y": 2},\n  "b": [1,2],\n  "c": 1\n}'),
    ('{"a": {"x": 1}}', [{"op": "move", "from": "/a/x", "path": "/y"}], '{"a": {}, "y": 1}'),
    ('{"a": [1,  2,\n3]}', [{"op": "remove", "path": "/a/1"}], '{"a": [1,\n3]}'),
    ('{"a": [1,  2,\n3]}', [{"op": "remove", "path": "/a/0"}], '{"a": [2,\n3]}'),
    ('{"a": []}', [{"op": "add", "path": "/a/-", "value": {"b": "ä"}}], '{"a": [{"b": "ä"}]}'),
    ('{\n    "a": 1\n}\n', [{"op": "add", "path": "/b", "value": 2}], '{\n    "a": 1,\n    "b": 2\n}\n'),
    ('{"a":  1}', [{"op": "add", "path": "/a", "value": [2]}], '{"a":  [2]}'),
    ('{"a~b":  {"c/d": 1}}', [{"op": "remove", "path": "/a~0b/c~1d"}], '{"a~b":  {}}'),
    ('{"a": [1, 2]}', [{"op": "add", "path": "/a/0", "value": 3}], '{"a": [3, 1, 2]}\n'),
])  # fmt: skip
def test_a_repair_keeps_the_layout_around_it(text: str, patch: list[dict[str, Any]], then: str) -> None:
    from agent_graph.cli.documents import document
    from agent_graph.core.limits import DEFAULTS

    mended = document("g.json", text.encode(), limits=DEFAULTS).mended(patch)
    assert mended == then


OUTER = {
    "name": "outer", "entry": "a", "nodes": [{"id": "a", "type": "subgraph", "config": {"graph_name": "inner"}}],
}  # fmt: skip


def test_a_graph_that_is_stored_is_found_and_without_a_folder_that_is_said(
    cli: Cli, written: File, data_dir: Path
) -> None:
    inner = {"name": "inner", "entry": "a", "nodes": [{"id": "a", "type": "passthrough"}]}
    file = written("outer.json", json.dumps(OUTER))
    done = cli("validate", file)
    assert (done.code, "SUBGRAPH_NOT_FOUND" in done.err) == (1, True)
    assert f"there is no data folder {data_dir} to look into" in done.err
    assert not data_dir.exists()
    assert cli("run", written("inner.json", json.dumps(inner)), "x").code == 0
    done = cli("validate", file)
    assert (done.code, done.out.startswith(b"outer is valid")) == (0, True), done.err
    done = cli("validate", file, "--data-dir", str(data_dir.parent / "other"))
    assert (done.code, "other to look into" in done.err) == (1, True)
    assert b"outer" not in cli("graphs").out


@pytest.mark.parametrize(("text", "told"), [
    ('{"name": "g",\n  "entry" "a"}', "INPUT_INVALID: {file}:2:11: not JSON: Expecting ':' delimiter"),
    ('{"name": "g", "nodes": [{"id": "a"}, {"id": "a",\n "id": "b"}]}', "INPUT_INVALID: {file}:2:2: the key \"id\""),
    ('{"name": "g",\n "max_iterations": NaN}', "INPUT_INVALID: {file}:2:20: NaN is not JSON"),
    ('{"name":\n1e999}', "INPUT_INVALID: {file}:2:1: the number 1e999 is too large for a float"),
    ('{"a": [1],\n"b":' + "1" * 5_000 + "}", "INPUT_INVALID: {file}:2:5: an integer has more than "),
])  # fmt: skip
@pytest.mark.parametrize("command", ["validate", "run", "render"])
def test_json_that_cannot_be_read_says_where(cli: Cli, written: File, command: str, text: str, told: str) -> None:
    file = written("g.json", text)
    done = cli(command, file)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(told.replace("{file}", file)), done.err


def test_standard_input_may_be_yaml(cli: Cli) -> None:
    done = cli("validate", "-", stdin=YAML.encode())
    assert (done.code, "standard input:12:13: warning" in done.err) == (0, True)
    done = cli("validate", "-", "--fix", stdin=YAML.encode())
    assert done.out.decode() == YAML.replace("{draf}", "{draft}").replace("reprot", "report")


def test_findings_follow_the_file_and_a_valid_one_ends_with_their_number(cli: Cli, written: File) -> None:
    file = written("g.json", JSON)
    done = cli("validate", file)
    at = [tuple(map(int, line.removeprefix(file + ":").split(": ")[0].split(":")))
          for line in done.err.splitlines() if line.startswith(file)]  # fmt: skip
    assert at == sorted(at)
    assert done.err.splitlines()[-1] == "2 warnings, 2 info; --fix makes 2 of the repairs"


def test_run_says_the_warnings_before_it_runs(cli: Cli, written: File) -> None:
    file = written("g.json", JSON.replace("{draf}", "{draf?}"))
    lines = cli("run", file, "x").err.splitlines()
    assert [line.split(" ")[:3] for line in lines[:2]] == [
        [f"{file}:3:17:", "warning", "OUTPUT_NEVER_WRITTEN"],
        [f"{file}:6:42:", "warning", "PROMPT_PLACEHOLDER_UNKNOWN"],
    ]
    assert lines[2].startswith("run-")


@pytest.mark.parametrize("command", ["run", "render"])
def test_a_wrong_graph_is_refused_with_its_lines_and_nothing_twice(cli: Cli, written: File, command: str) -> None:
    file = written("g.json", JSON.replace('"to": "b"', '"to": "bb"'))
    done = cli(command, file)
    assert (done.code, done.err.count('there is no node "bb"')) == (1, 1)
    assert f"{file}:9:33: error UNKNOWN_NODE at /edges/0/to: " in done.err
    assert done.err.splitlines()[-1].startswith(f"SPEC_INVALID: {file} is not valid: ")
