"""Templates: what is a placeholder, what stays text, and that values are never looked at again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_graph.core.effects import MISSING
from agent_graph.core.limits import DEFAULTS
from agent_graph.core.ops.prompt import Placeholder, parse
from agent_graph.errors import NodeFailure

NASTY = 'a {b} {input} {{input}} \\1 \\g<0> $1 %s {"x":1}'


def render(text: str, **values: Any) -> str:
    def resolve(path: str) -> Any:
        return values.get(path, MISSING)

    return parse(text).render(resolve, max_bytes=DEFAULTS.value_bytes)


def test_only_placeholders_are_replaced_and_other_braces_reach_the_model() -> None:
    untouched = '{ } {"a":{"b": {input , }{ {0} {input!r} {input:>10} {{% raw %}} {input[0]} {} {{}} { input } {1a}'
    assert render(untouched) == untouched
    template = 'Reply as {"label": "x", "opts": {}} about {input}. Also {"a":{"b":{input}}}, ${input} and {{input}}.'
    expected = 'Reply as {"label": "x", "opts": {}} about it. Also {"a":{"b":it}}, $it and {input}.'
    assert render(template, input="it") == expected


@pytest.mark.parametrize(
    ("text", "placeholder"),
    [
        ("{name}", Placeholder("name")), ("{_x}", Placeholder("_x")), ("{a.b.0}", Placeholder("a.b.0")),
        ("{outputs.analyst-1.text}", Placeholder("outputs.analyst-1.text")), ("{größe}", Placeholder("größe")),
        ("{name?}", Placeholder("name", optional=True)), ("{name|json}", Placeholder("name", as_json=True)),
        ("{/a~1b/0}", Placeholder("/a~1b/0")), ("{/}", Placeholder("/")),
        ("{/a.b?}", Placeholder("/a.b", optional=True)),
        ("{/k//x|json}", Placeholder("/k//x", as_json=True)),
    ],
)  # fmt: skip
def test_a_placeholder_is_a_path_with_at_most_one_mark(text: str, placeholder: Placeholder) -> None:
    assert parse(text).parts == (placeholder,)
    assert parse(f"{{{text}}}").parts == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "{0}", "{a..b}", "{.a}", "{a.}", "{a b}", "{a?|json}", "{a|upper}", "{a!r}", "{a:>3}", "{-a}", "{/a b}",
        "{/a~2}", '{/"a"}',
        "{/* no comment */}", "{a", "a}", "{a\n}", "{{a}", "{}", "{{{}}}",
    ],
)  # fmt: skip
def test_everything_else_is_text(text: str) -> None:
    if text == "{{a}":
        assert render(text, a=1) == "{1"
        return
    assert parse(text).placeholders == ()
    assert render(text) == text


def test_three_braces_are_a_brace_and_an_escape() -> None:
    assert render("{{{a}}}", a=1) == "{{a}}"


def test_text_goes_in_raw_and_other_values_as_canonical_json() -> None:
    assert render("{s}|{n}|{f}|{t}|{o}|{z}", s='say "hi"', n=10**30, f=3.0, t=True, o={"k": ["ü", 1]}, z=None) == (
        'say "hi"|1000000000000000000000000000000|3|true|{"k":["ü",1]}|null'
    )
    assert render("{s|json} {n|json}", s='say "hi"', n=1) == '"say \\"hi\\"" 1'


def test_inserted_text_is_never_expanded_again() -> None:
    assert render("Summarise: {ra} {b}", ra=NASTY, b="SECRET", input="{ra}") == f"Summarise: {NASTY} SECRET"
    assert render("{a}{b}", a="{", b="a}") == "{a}"


@given(st.dictionaries(st.sampled_from("abc"), st.text(), min_size=3), st.text("abc{}?|json ", max_size=30))
def test_rendering_puts_each_value_in_once(values: dict[str, str], text: str) -> None:
    parts = [part if isinstance(part, str) else values.get(part.path, "") for part in parse(text).parts]
    if all(place.path in "abc" and len(place.path) == 1 and not place.as_json for place in parse(text).placeholders):
        assert render(text, **values) == "".join(parts)


@given(st.text("ab{}?/~|", max_size=40))
def test_a_template_without_placeholders_and_escapes_is_its_own_text(text: str) -> None:
    template = parse(text)
    if not template.placeholders and "{{" not in text:
        assert template.render(lambda path: MISSING, max_bytes=DEFAULTS.value_bytes) == text


def test_every_missing_value_is_named_before_anything_is_made() -> None:
    with pytest.raises(NodeFailure, match=r"no value for \{b\}, \{/c\}; write \{b\?\}") as caught:
        render("{a} {b} {/c} {b|json} {d?}", a=1)
    assert caught.value.code == "PROMPT_VALUE_MISSING"
    assert caught.value.failure_class == "invalid"
    assert caught.value.details == {"paths": ["b", "/c"]}


def test_a_value_that_may_be_missing_is_empty_but_null_is_a_value() -> None:
    assert render("<{a?}>") == "<>"
    assert render("<{a?}>", a=None) == "<null>"
    assert render("<{a?}>", a="x") == "<x>"


def test_a_text_is_given_up_as_soon_as_it_is_too_large() -> None:
    template = parse("{a}" * 100_000)
    with pytest.raises(NodeFailure) as caught:
        template.render(lambda path: "x" * 1_000_000, max_bytes=DEFAULTS.value_bytes)
    assert caught.value.code == "VALUE_TOO_LARGE"
    assert parse("ab{a}").render(lambda path: "c", max_bytes=3) == "abc"
    with pytest.raises(NodeFailure):
        parse("ab{a}d").render(lambda path: "c", max_bytes=3)
