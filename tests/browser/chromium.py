"""Real Chromium before a served console: who looks, and all that a page did which no page of ours may do."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, Request, Response, async_playwright

WAIT_MS = 20_000
"""How long a page has for what a test waits for, also on a busy machine."""
PLAIN = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")
"""Said of every page that tells of a refusal."""


def program() -> str | None:
    """The system's Chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@asynccontextmanager
async def started() -> AsyncIterator[Browser]:
    """One browser without a screen, that reaches nothing but this machine."""
    flags = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=flags)
        yield browser
        await browser.close()


class Watch:
    """What one person's pages did behind the page: all lists stay empty."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []
        """Every request, without the address of the server."""
        self.outside: list[str] = []
        self.dialogs: list[str] = []
        self.said: list[str] = []
        """The console of the developer tools: scripts that broke, what the policy for content refused."""
        self.broken: list[str] = []
        """Files and streams that were not given."""

    def attach(self, context: BrowserContext) -> None:
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("dialog", self._dialog)
        context.on("console", lambda said: self.said.append(said.text))
        context.on("weberror", lambda bug: self.said.append(str(bug.error)))

    def faults(self) -> dict[str, list[str]]:
        said = [text for text in self.said if not PLAIN.match(text)]
        found = {"outside": self.outside, "dialogs": self.dialogs, "said": said, "broken": self.broken}
        return {name: texts for name, texts in found.items() if texts}

    def forgive(self, *marks: str) -> None:
        """A test has made that go wrong itself."""
        for texts in (self.said, self.broken):
            texts[:] = [text for text in texts if not any(mark in text for mark in marks)]

    def _request(self, request: Request) -> None:
        if request.url.startswith(self.url + "/"):
            self.asked.append(request.url.removeprefix(self.url))
        else:
            self.outside.append(request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.request.resource_type != "document":
            self.broken.append(f"{response.status} {response.url}")

    async def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        await dialog.dismiss()


class Person:
    """Somebody in front of one browser window."""

    def __init__(self, context: BrowserContext, page: Page, watch: Watch) -> None:
        self.context, self.page, self.watch = context, page, watch

    async def go(self, path: str) -> None:
        await self.page.goto(f"{self.watch.url}{path}")

    async def log_in(self, token: str) -> None:
        await self.go("/login")
        await self.page.fill("#token", token)
        await self.page.click("#log-in")
        await self.page.wait_for_selector("#log-out")

    async def sees(self, selector: str, text: str = "") -> None:
        """Waits until it is on the page, and holds that text."""
        await self.page.locator(selector).filter(has_text=text).first.wait_for(timeout=WAIT_MS)

    async def sees_no(self, selector: str) -> None:
        await self.page.wait_for_selector(selector, state="detached", timeout=WAIT_MS)

    async def reads(self, selector: str) -> str:
        return " ".join((await self.page.locator(selector).first.inner_text()).split())

    async def tab(self) -> Person:
        """Another tab of the same browser."""
        return Person(self.context, await self.context.new_page(), self.watch)

    async def mark(self) -> None:
        """So that `still_here` tells whether the page was loaded anew since."""
        await self.page.evaluate("window.marked = true")

    async def still_here(self) -> bool:
        return bool(await self.page.evaluate("window.marked === true"))


@cache
def axe() -> str:
    """The script of axe-core."""
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


async def faults(page: Page, *rules: str) -> Sequence[str]:
    """What axe-core finds serious or critical on the page, by `rules` alone where some are named.

    The script comes by the debugger: the page's own policy would not let it in.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe())
    only = {"preload": False, "resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    found = await page.evaluate("only => axe.run(document, only)", only)
    return [
        f"{page.url}: {one['impact']} {one['id']}: {node['html'][:160]}"
        for one in found["violations"] if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]  # fmt: skip


FORM = """() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const ids = all("[id]").map((one) => one.id);
  const found = [];
  if (!document.doctype || document.compatMode !== "CSS1Compat") found.push("no doctype");
  if (document.documentElement.lang !== "en") found.push("no language");
  if (!document.title.trim()) found.push("no title");
  if (all("h1").length !== 1) found.push(all("h1").length + " h1");
  if (all("main").length !== 1) found.push("no main");
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) found.push("twice the id " + id);
  for (const one of all("input:not([type=hidden]):not([hidden]), select, textarea:not([hidden])"))
    if (!one.labels.length && !one.ariaLabel) found.push("no label: " + one.outerHTML);
  for (const one of all("[aria-labelledby], [aria-describedby], label[for]"))
    for (const name of ["aria-labelledby", "aria-describedby", "for"])
      for (const id of (one.getAttribute(name) || "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) found.push("leads to no element: " + name + " " + id);
  let last = 0;
  for (const one of all("h1, h2, h3, h4")) {
    const level = Number(one.tagName[1]);
    if (level > last + 1) found.push("a heading is left out before " + one.textContent);
    last = level;
  }
  if (all("script:not([src]), style, [style], [onclick], [onload], [onerror]").length) found.push("something inline");
  return found;
}"""

WIDE = """() => {
  const most = document.documentElement.clientWidth;
  const found = document.documentElement.scrollWidth > most ? ["the page scrolls sideways"] : [];
  for (const one of document.querySelectorAll("body *")) {
    const box = one.getBoundingClientRect();
    if (box.right > most + 1 && box.width && !one.closest(".sr, .skip, .drawing, svg, .value"))
      found.push(Math.round(box.right) + " of " + most + ": " + one.outerHTML.slice(0, 120));
  }
  return found;
}"""


async def unshapely(page: Page) -> Sequence[str]:
    """What is not as a page has to be: one title, labels for all fields, no id twice."""
    return [f"{page.url}: {fault}" for fault in await page.evaluate(FORM)]


async def too_wide(page: Page) -> Sequence[str]:
    """What is wider than the window."""
    return [f"{page.url}: {fault}" for fault in await page.evaluate(WIDE)]
