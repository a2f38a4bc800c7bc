"""A browser without a screen: keeps cookies, reads pages, fills in the forms that stand in them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import httpx2

from agent_graph.console.serving import Served, beside
from agent_graph.mcp_server.http.access import Access
from agent_graph.mcp_server.http.app import http_app
from agent_graph.mcp_server.http.rates import Rates
from agent_graph.settings import load
from agent_graph.tools.deps import Deps
from tests.mcp_server.served import BASE, asked

OTHERS = ("runs:read", "runs:write", "approvals:decide")


class _Reader(HTMLParser):
    """Texts by id, and forms by id with what they would send."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.forms: dict[str, dict[str, str]] = {}
        self.actions: dict[str, str] = {}
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._open: list[tuple[str, str]] = []
        self._form: dict[str, str] = {}
        self._field = ""
        self._select = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        about = {name: value or "" for name, value in attrs}
        self.tags.append((tag, about))
        if tag == "form":
            name = about.get("id", about["action"])
            self._form = self.forms.setdefault(name, {})
            self.actions[name] = about["action"]
        elif tag == "input" and (about.get("type") != "radio" or "checked" in about):
            self._form[about["name"]] = about.get("value", "")
        elif tag == "textarea":
            self._field = about["name"]
            self._form[self._field] = ""
        elif tag == "select":
            self._select = about["name"]
            self._form.setdefault(self._select, "")
        elif tag == "option" and "selected" in about:
            self._form[self._select] = about.get("value", "")
        elif tag == "a":
            self.links.append(about.get("href", ""))
        if tag not in ("input", "meta", "link", "br", "path", "rect", "circle", "option"):
            self._open.append((tag, about.get("id", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._form[self._field] = self._form[self._field].removeprefix("\n")
            self._field = ""
        for index in reversed(range(len(self._open))):
            if self._open[index][0] == tag:
                del self._open[index:]
                return

    def handle_data(self, data: str) -> None:
        if self._field:
            self._form[self._field] += data
        for _, name in self._open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


class Page:
    """One answer, read."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.status = response.status_code
        self.html = response.text
        reader = _Reader()
        reader.feed(self.html)
        self.forms, self.actions, self.links, self.tags = reader.forms, reader.actions, reader.links, reader.tags
        self._texts = reader.texts

    def text(self, name: str) -> str:
        """What stands in the element of that id, "" where there is none."""
        return " ".join(self._texts.get(name, "").split())

    def exact(self, name: str) -> str:
        return self._texts.get(name, "")


class Browser:
    """One person in front of the console."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str) -> Page:
        return Page(await self.client.get(path, follow_redirects=True))

    async def send(self, page: Page, form: str, **fields: str) -> Page:
        """Send a form as it stands, with `fields` filled in."""
        return await self.post(page.actions[form], {**page.forms[form], **fields})

    async def post(self, path: str, fields: dict[str, str]) -> Page:
        crlf = {
            name: value.replace("\r\n", "\n").replace("\n", "\r\n") for name, value in fields.items()
        }  # as browsers send it
        response = await self.client.post(path, data=crlf, headers={"origin": BASE})
        while response.status_code == 303:
            response = await self.client.get(response.headers["location"])
        return Page(response)

    async def log_in(self, token: str) -> Page:
        page = await self.send(await self.get("/login"), "login", token=token)
        assert page.status == 200, page.html
        return page


class House:
    """A served console, and any number of browsers before it."""

    def __init__(self, app: Any, served: Served, deps: Deps) -> None:
        self.app, self.served, self.deps = app, served, deps

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Browser]:
        transport = httpx2.ASGITransport(self.app, client=("203.0.113.7", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
            yield Browser(client)


@asynccontextmanager
async def served(deps: Deps, **environ: str) -> AsyncIterator[House]:
    """The application as `agent-graph serve` puts it together."""
    variables = {f"AGENT_GRAPH_HTTP_{name.upper()}": value for name, value in environ.items()}
    settings = load({"data_dir": ":memory:"}, environ=variables)
    access, rates = Access(deps.store.tokens, settings.http, deps.clock), Rates(settings.http.rate)
    made = beside(deps, settings.http, let_in=access.of_token, take=rates.take)
    app = http_app(deps, settings, access=access, rates=rates, mounts=made.routes)
    async with asked(app):
        yield House(app, made, deps)
