"""What is said to a model first: templates made into messages; knows no host's wire.

A message is {role, content, images?}: `content` a text, `images` data URLs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Literal

from agent_graph.core import images
from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.effects import MaybeJson
from agent_graph.core.images import MOST_IMAGES
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.jsonvalue import JsonObject, JsonValue, parse_json
from agent_graph.core.limits import Limits
from agent_graph.core.ops.prompt import Template, parse
from agent_graph.errors import InvalidRequest, NodeFailure

Find = Callable[[str], MaybeJson]
"""What a placeholder's path stands for."""
MOST_MESSAGES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; `content` and `images` are templates."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    role: Literal["system", "user", "assistant"]
    """Who says it."""
    content: str
    """What is said."""
    images: Annotated[list[str], Len(0, MOST_IMAGES)] = field(default_factory=list)
    """Pictures as data URLs, or placeholders of state values that hold them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A message whose templates are parsed; `at` leads to it from the config."""

    role: str
    content: Template
    content_at: str
    images: tuple[tuple[Template, str], ...] = ()
    """Each with its pointer."""


def parts(*, system: str, prompt: str, pictures: Sequence[str], messages: Sequence[Message] | None) -> tuple[Part, ...]:
    """The messages of a node: those written out, or `system` and then `prompt` with the pictures."""
    if messages is not None:
        return tuple(
            Part(one.role, parse(one.content), pointer("messages", place, "content"),
                 _templates(one.images, ("messages", place)))
            for place, one in enumerate(messages)
        )  # fmt: skip
    said = [Part("system", parse(system), "/system")] if system else []
    return (*said, Part("user", parse(prompt), "/prompt", _templates(pictures)))


def _templates(pictures: Sequence[str], at: tuple[str | int, ...] = ()) -> tuple[tuple[Template, str], ...]:
    return tuple((parse(text), pointer(*at, "images", place)) for place, text in enumerate(pictures))


def templates(said: Sequence[Part]) -> Iterator[tuple[Template, str]]:
    """Every template with its pointer."""
    for part in said:
        yield part.content, part.content_at
        yield from part.images


def image_issues(said: Sequence[Part], *, node_id: str) -> list[Issue]:
    """IMAGE_INVALID for a picture that is written out and is none."""
    found = []
    for part in said:
        for template, at in part.images:
            if not template.placeholders:
                try:
                    images.parse("".join(str(text) for text in template.parts))
                except ValueError as error:
                    found.append(Issue("IMAGE_INVALID", str(error), pointer=at, node_id=node_id))
    return found


def rendered(said: Sequence[Part], find: Find, limits: Limits) -> tuple[JsonObject, ...]:
    """The messages with every value in its place.

    Raises `NodeFailure` PROMPT_VALUE_MISSING, IMAGE_INVALID, and VALUE_TOO_LARGE when the texts together have more
    than `prompt_bytes` or the pictures more than `value_bytes`.
    """
    made: list[JsonObject] = []
    texts, pictures, count = limits.prompt_bytes, limits.value_bytes, 0
    for part in said:
        content = part.content.render(find, max_bytes=limits.prompt_bytes)
        texts -= len(content.encode())
        if texts < 0:
            message = f"the prompt is larger than {limits.prompt_bytes} bytes"
            raise NodeFailure("VALUE_TOO_LARGE", message, limit=limits.prompt_bytes)
        message_: JsonObject = {"role": part.role, "content": content}
        shown: list[JsonValue] = [url for one, at in part.images for url in _pictures(one, at, find, limits)]
        pictures -= sum(len(str(url)) for url in shown)
        count += len(shown)
        if pictures < 0 or count > MOST_IMAGES:
            message = f"the pictures of one call are at most {MOST_IMAGES}, of {limits.value_bytes} bytes together"
            raise NodeFailure("VALUE_TOO_LARGE", message, limit=limits.value_bytes, pictures=count)
        made.append({**message_, "images": shown} if shown else message_)
    return tuple(made)


def _pictures(template: Template, at: str, find: Find, limits: Limits) -> Iterator[JsonValue]:
    """The data URLs a template gives: one, none where it is empty, or those of a list."""
    text = template.render(find, max_bytes=limits.value_bytes).strip()
    listed: JsonValue = [text] if text else []
    if text.startswith("["):
        try:
            listed = parse_json(text, max_bytes=limits.value_bytes, max_depth=2)
        except InvalidRequest:
            listed = [text]
    assert isinstance(listed, list), "a JSON text that starts with a bracket"
    for one in listed:
        try:
            yield images.parse(str(one)).data_url
        except ValueError as error:
            raise NodeFailure("IMAGE_INVALID", f"{at}: {error}", pointer=at) from None
