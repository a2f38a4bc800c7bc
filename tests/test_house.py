"""The house's rules of size and shape, with no list of exceptions: when one is red, split or rename."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agent_graph"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in MODULES]

MODULE_LINES = 350
FUNCTION_LINES = 50
FORBIDDEN_WORDS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
BROAD_EXCEPT = {
    "agent_graph/tools/registry.py": "a bug becomes INTERNAL",
    "agent_graph/core/step.py": "NodeFailed",
    "agent_graph/core/policy/verdict.py": "a rule that breaks denies",
}
TEST_FOLDERS = {
    "acceptance", "benchmarks", "browser", "checker", "cli", "connect", "console", "core", "distributed", "docs",
    "engine", "fakes", "golden", "live", "llm", "mcp_server", "patterns", "process", "properties", "scenarios", "soak",
    "store", "system", "tools", "typing",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def imported(path: Path) -> Iterator[str]:
    """The top-level names that the module imports, wherever in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def words(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_a_module_fits_on_a_few_screens(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_a_function_fits_on_one_screen(path: Path) -> None:
    long = {f.name: length for f in functions(path) if (length := (f.end_lineno or 0) - f.lineno + 1) > FUNCTION_LINES}
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_a_module_says_in_one_sentence_what_it_does(path: Path) -> None:
    first = (ast.get_docstring(tree(path)) or "").partition("\n\n")[0]
    assert first.endswith("."), "the first paragraph is one sentence and ends with a full stop"
    sentences = 1 + len(re.findall(r"[.!?]\s+[A-Z]", first))
    may_say_what_it_may_not = path.is_relative_to(PACKAGE / "core") or path.is_relative_to(PACKAGE / "store")
    assert sentences <= 1 + may_say_what_it_may_not, "the rest goes into the next paragraph"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_names_say_what_a_thing_is(path: Path) -> None:
    named = [node.name for node in ast.walk(tree(path)) if isinstance(node, Function | ast.ClassDef)]
    named += path.relative_to(PACKAGE).with_suffix("").parts
    vague = [name for name in named if words(name) & FORBIDDEN_WORDS]
    assert not vague


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_nothing_is_left_unfinished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", text)
    assert "NotImplementedError" not in text


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_bugs_are_caught_where_something_is_made_of_them(path: Path) -> None:
    broad = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node.type)
    ]
    assert not broad or str(path.relative_to(ROOT)) in BROAD_EXCEPT


def _catches_everything(caught: ast.expr | None) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(k is None or (isinstance(k, ast.Name) and k.id in ("Exception", "BaseException")) for k in kinds)


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_times_are_milliseconds_and_say_so(path: Path) -> None:
    seconds = re.compile(r"_(?:s|sec|secs|seconds|minutes|hours|timestamp)$")
    fields = [
        node.target.id
        for node in ast.walk(tree(path))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    assert not [name for name in fields if seconds.search(name)]


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_text_speaks_of_the_project_alone(path: Path) -> None:
    assert not re.findall(r"(?:^|[\s\"'(=])/(?:root|home|work)/\w", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_code_is_written_in_plain_signs(path: Path) -> None:
    assert not re.findall("[\U0001f000-\U0001faff\u2600-\u27bf]", path.read_text(encoding="utf-8"))


def test_node_types_are_named_like_their_files() -> None:
    from agent_graph.core.nodes import NODE_TYPES

    files = {path.stem for path in (PACKAGE / "core" / "nodes").glob("*.py")} - {"__init__", "base"}
    assert {module.rpartition(".")[2] for module in map(_module_of, NODE_TYPES.values())} <= files
    assert set(NODE_TYPES) <= files


def _module_of(node_type: object) -> str:
    return getattr(node_type, "__name__", type(node_type).__module__)


def test_tests_stand_where_the_code_stands() -> None:
    """A test file lies in the folder of what it tests; the rest is at the top, about the house as a whole."""
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in TESTS if path.parent != ROOT / "tests"}
    assert folders <= TEST_FOLDERS


def test_every_dependency_is_imported_and_every_import_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    declared = {_import_name(line) for line in [*project["dependencies"], *optional["draw"], *optional["local"]]}
    found = {name for path in MODULES for name in imported(path)} - set(sys.stdlib_module_names) - {"agent_graph"}
    assert found - {"pydantic_core"} == declared, "pydantic_core is one with pydantic"


def _import_name(requirement: str) -> str:
    name = re.split(r"[^A-Za-z0-9-]", requirement)[0]
    return {"google-re2": "re2", "pyjwt": "jwt"}.get(name, name.replace("-", "_"))


def test_every_dependency_has_its_reason_beside_it() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    bare = [line for line in lines if re.match(r'  "[a-z0-9-]+(\[\w+\])?[><=]', line) and "#" not in line]
    assert not bare


def test_every_silenced_rule_has_its_reason_beside_it() -> None:
    alone = re.compile(r"#\s*(noqa(: [A-Z0-9, ]+)?|type: ignore(\[[\w, -]+\])?|pragma: no cover)\W*$")
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if alone.search(line)
    ]
    assert not bare
