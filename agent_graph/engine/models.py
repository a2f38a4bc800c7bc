"""Which model host answers a call, chosen when the first call needs it; the choice itself belongs to whoever composes.

A model is named as its host names it, or as ``HOST/MODEL``: only the name of a configured host counts as a prefix,
because a model's own name may hold a ``/``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from agent_graph.core.classes import dataclass
from agent_graph.errors import ModelNotFound
from agent_graph.llm.base import ModelClient

PROVIDER: Final = ""
"""The host without a name: whoever the provider of the settings is."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A host, the model to ask there ("" = the host decides), and what a person should know of it ("" = nothing)."""

    client: ModelClient
    model: str
    remark: str = ""
    name: str = PROVIDER

    @property
    def place(self) -> str:
        """What the limits of calls go by: two named hosts share none, though they be one machine."""
        return self.name or self.client.host


Choose: TypeAlias = Callable[[], Awaitable[Chosen]]


def split(model: str, hosts: Container[str], *, default: str = PROVIDER) -> tuple[str, str]:
    """(host, model there): the part before the first ``/`` where it is one of `hosts`, else `default` and all of it."""
    name, mark, rest = model.partition("/")
    return (name, rest) if mark and name and name in hosts else (default, model)


class Models:
    """The hosts of a process. A choice that fails is made again at the next call.

    `choose` makes the host without a name, `hosts` those of the settings; `default_host` answers where a model has no
    prefix, and `model` (a prefix allowed) is asked where none is named.
    """

    def __init__(
        self,
        choose: Choose,
        *,
        hosts: Mapping[str, Choose] | None = None,
        default_host: str = PROVIDER,
        model: str = "",
        remark: Callable[[str], None] | None = None,
    ) -> None:
        self._choose: dict[str, Choose] = {PROVIDER: choose, **(hosts or {})}
        self._default_host = default_host
        self._model = model
        self._remark = remark
        self._chosen: dict[str, Chosen] = {}
        self._locks = {name: asyncio.Lock() for name in self._choose}

    @property
    def chosen(self) -> Chosen | None:
        """The host that answers where none is named, once it was chosen."""
        return self._chosen.get(self.split(self._model)[0])

    @property
    def default_model(self) -> str:
        """The model that is asked where none is named, as far as that is known without asking a host."""
        return self._model

    @property
    def names(self) -> tuple[str, ...]:
        """The named hosts, in order."""
        return tuple(name for name in self._choose if name)

    @property
    def default_host(self) -> str:
        """The name of the host that is asked where none is named, "" for the provider."""
        return self.split(self._model)[0]

    def split(self, model: str) -> tuple[str, str]:
        """(host, model there); "" as host is the provider."""
        return split(model, self._choose, default=self._default_host)

    async def find(self, model: str = "") -> Chosen:
        """The host that `model` names and the model to ask there; raises what choosing raises.

        That is `ModelNotConfigured`, `ModelUnreachable` and their like.
        """
        name, there = self.split(model or self._model)
        chosen = await self.host(name)
        return replace(chosen, model=there) if there and there != chosen.model else chosen

    async def host(self, name: str) -> Chosen:
        """The host of that name, with its own default model. Raises what choosing raises."""
        chosen = self._chosen.get(name)
        if chosen is not None:
            return chosen
        async with self._locks[name]:  # a host that is slow to choose holds up no other
            chosen = self._chosen.get(name)
            if chosen is None:
                chosen = replace(await self._choose[name](), name=name)
                self._chosen[name] = chosen
                if chosen.remark and self._remark is not None:
                    self._remark(chosen.remark)
            return chosen

    def explained(self, error: ModelNotFound, model: str) -> ModelNotFound:
        """`error`, with the hosts there are where `model` looks as if it named one that is not."""
        name, mark, _ = model.partition("/")
        if not mark or name in self._choose or "." in name or not self.names:
            return error
        hosts = ", ".join(self.names)
        return ModelNotFound(f'{error.message}; no host is named "{name}" (there are: {hosts})', **error.details)

    async def aclose(self) -> None:
        for chosen in self._chosen.values():
            await chosen.client.aclose()
