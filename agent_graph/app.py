"""Composition root, the only place that names a driver: opens a data folder and puts everything over it together."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_graph import __version__
from agent_graph.connect.targets import make_targets
from agent_graph.core.jsonvalue import JsonObject
from agent_graph.engine.announce import Announcer
from agent_graph.engine.approvers import Approvers
from agent_graph.engine.catalog import Catalog
from agent_graph.engine.clock import Clock, SystemClock
from agent_graph.engine.connections import Connection, Connections
from agent_graph.engine.heartbeat import Heartbeat
from agent_graph.engine.key_health import look
from agent_graph.engine.keys import KeyRing, open_keys
from agent_graph.engine.limiter import Limiter
from agent_graph.engine.log_redaction import redacted_logs
from agent_graph.engine.look_over import LookOver
from agent_graph.engine.models import PROVIDER, Choose, Chosen, Models, split
from agent_graph.engine.notify import Notify
from agent_graph.engine.outbox import Outbox
from agent_graph.engine.retention import Policy, Retention
from agent_graph.engine.shell import Shell
from agent_graph.engine.supervisor import Supervisor
from agent_graph.engine.templates import Library
from agent_graph.errors import CapabilityMissing, ModelNotConfigured, ModelNotFound, ModelUnreachable
from agent_graph.llm.base import ModelClient
from agent_graph.settings import MEMORY, Settings
from agent_graph.settings.hosts import HostSetting
from agent_graph.store.base import Finding, Store
from agent_graph.system.garbage import seldom_collect
from agent_graph.tools.deps import Deps
from agent_graph.tools.socket_address import found_at
from agent_graph.tools.socket_wire import SOCKET_NAME

if TYPE_CHECKING:
    from agent_graph.store.lock import FolderLock

START_IT: Final = "start Ollama there, or name another with --ollama-host"
"""What to do about an Ollama that is away."""
DATABASE: Final = "agent-graph.db"
MECHANICS: Final = "no Ollama answers: using the embedded model, which shows the mechanics, not sense"


@asynccontextmanager
async def open_app(
    settings: Settings, *, recover: bool = False, serve: bool = True, remark: Callable[[str], None] | None = None,
    model: ModelClient | None = None, connections: Iterable[Connection] = (),
) -> AsyncIterator[Deps]:  # fmt: skip
    """Own the data folder, open its store, run the engine and keep to the policy of retention until the block ends.

    `recover` drives every unfinished run on; `serve` lets the commands of a second terminal in, through a socket in
    the folder; `remark` hears what a person should know; `model` answers in place of the host the settings name;
    `connections` are those that graphs can name, closed at the end. Raises `SettingInvalid` for a script that is none,
    before the folder is touched; `DataDirLocked`; the ``Store*`` errors; what `open_keys` raises.
    """
    seldom_collect()
    clock = SystemClock()
    models = _models(settings, model, remark=remark)
    if remark is not None and serve and model is None:
        for warning in _warnings(settings):
            remark(warning)
    async with AsyncExitStack() as opened:
        store, lock, keys = await _open_store(settings, opened, now_ms=clock.now_ms(), serve=serve)
        opened.push_async_callback(models.aclose)
        library, redactor = Library(settings.data_dir), settings.redactor
        catalog = Catalog(store, clock=clock, limits=settings.limits, templates=library, redactor=redactor)
        named = Connections(connections)
        opened.push_async_callback(named.aclose)
        outbox = _outbox(settings, store, clock, opened)
        told = outbox.announcer if outbox else None
        shell = Shell(store, clock, Notify(), models, Limiter(), named, keys=keys, announcer=told, redactor=redactor)
        opened.enter_context(redacted_logs(redactor))
        supervisor = Supervisor(shell, catalog=catalog, limits=settings.limits)
        opened.push_async_callback(supervisor.shutdown, "the program that drove the run stopped")
        if lock is not None:
            heartbeat = Heartbeat(store, beat=lock.beat, lost=supervisor.halt)
            opened.push_async_callback(heartbeat.stop)
            heartbeat.watch()
        await supervisor.recover(resume=recover)
        if serve:
            _keep_house(settings, store, clock, opened, outbox)
        deps = Deps(
            settings.limits, store, clock, catalog, supervisor, models, str(settings.data_dir or MEMORY),
            settings.describe, clock.now_ms(), settings.policies, Approvers(settings.data_dir),
            settings.deletion, keys, outbox=outbox,
        )  # fmt: skip
        if serve and settings.data_dir is not None:
            from agent_graph.tools import socket_server

            # Entered last, left first: whoever watches sees the owner go before it sees what the going did to a run.
            await opened.enter_async_context(socket_server.serve(deps, settings.data_dir, loopback=settings.loopback))
        yield deps


def _keep_house(
    sets: Settings, store: Store, clock: SystemClock, opened: AsyncExitStack, outbox: Outbox | None
) -> None:
    opened.push_async_callback(LookOver(store).aclose)
    retention = Retention(store, clock, Policy(sets.retention_days, sets.retention_runs, sets.retention_bytes))
    opened.push_async_callback(retention.stop)
    retention.watch()
    if outbox is not None:
        outbox.watch()


async def check_owner(settings: Settings) -> None:
    """Raises `DataDirLocked` when the process that owns the data folder is stopped or stuck."""
    from agent_graph.store.lock import check_alive

    if settings.data_dir is not None:
        await check_alive(settings.data_dir, now_ms=SystemClock().now_ms())


async def set_up_local(settings: Settings, *, tell: Callable[[str], None]) -> Path:
    """See to it that the embedded model's weights are in the data folder; returns their file.

    `tell` hears what takes time. Raises what `llm.local_setup.fetch_weights` raises, and `StoreUnusable`.
    """
    from agent_graph.llm.local_setup import fetch_weights
    from agent_graph.store.folder import prepare_folder

    prepare_folder(settings.models_dir.parent)
    if importlib.util.find_spec("xllamacpp") is None:
        tell("nothing runs the weights without the extra `local`: pip install 'agent-graph[local]'")
    return await fetch_weights(settings.models_dir, tell=tell)


async def diagnose(settings: Settings, *, full: bool) -> tuple[Finding, ...]:
    """What a run needs, looked at from outside: nothing is written, and an owner of the folder is not disturbed.

    `full` compares every index of the database with its table too. What is wrong is a finding, not an error.
    """
    from agent_graph.store.diagnosis import clock, machine, store
    from agent_graph.tools.load import load
    from agent_graph.tools.status import model_host, named_hosts

    found, newest_ms, now_ms = [machine(__version__)], 0, SystemClock().now_ms()
    if settings.data_dir is not None:
        path, keyless = settings.integrity_key_path, settings.integrity_key == "off"
        keys, ring = look(settings.data_dir, was=_begun, keyless=keyless, path=path)
        about_store, newest_ms = await store(
            settings.data_dir, DATABASE, full=full, now_ms=now_ms, tells=settings.notify.describe(),
            ring=ring, rows=all(one.level == "ok" for one in keys),
        )  # fmt: skip
        found += about_store + keys
        busy = await load(settings.data_dir)
        found += [] if busy is None else [busy]
    found.append(clock(now_ms, newest_ms=newest_ms))
    models = _models(settings, None, remark=None)
    try:
        found.append(_host("model", await model_host(models)))
        found += [_host(f"host {name}", health) for name, health in (await named_hosts(models)).items()]
    finally:
        await models.aclose()
    return tuple(found)


def _host(name: str, health: JsonObject) -> Finding:
    if health["ok"]:
        default = f", default {health['default_model']}" if health["default_model"] else ""
        return Finding(name, "ok", f"{health['provider']} at {health['host']}{default}", health)
    return Finding(name, "warning", f"{health['error_code']}: {health['error']}", health)


def _outbox(settings: Settings, store: Store, clock: Clock, opened: AsyncExitStack) -> Outbox | None:
    """Who tells those the settings name; stopped after the runs have, so that what they ended with is told."""
    notify = settings.notify
    targets = make_targets(notify)
    if not targets:
        return None
    announcer = Announcer(tuple(t.name for t in targets), frozenset(notify.events), notify.text, settings.redactor)
    outbox = Outbox(store, clock, targets, announcer=announcer, tries=notify.tries)
    opened.push_async_callback(outbox.stop)
    return outbox


def open_ring(settings: Settings, *, now_ms: int) -> KeyRing:
    """The keys of the data folder, made at its first start. Raises what `open_keys` raises."""
    keyless, path = settings.integrity_key == "off", settings.integrity_key_path
    return open_keys(settings.data_dir, now_ms=now_ms, keyless=keyless, path=path, was=_begun)


def _begun(folder: Path) -> str:
    from agent_graph.store.key_mark import begun  # asked only where the book of keys is missing

    return begun(folder)


async def _open_store(
    settings: Settings, opened: AsyncExitStack, *, now_ms: int, serve: bool
) -> tuple[Store, FolderLock | None, KeyRing]:
    from agent_graph.store.lock import lock_folder
    from agent_graph.store.sqlite import open_store

    lock = None
    if settings.data_dir is None:
        keys = open_ring(settings, now_ms=now_ms)
        store = await open_store(":memory:")
    else:
        reach = found_at(settings.data_dir / SOCKET_NAME, loopback=settings.loopback) if serve else ""
        lock = await opened.enter_async_context(await lock_folder(settings.data_dir, now_ms=now_ms, reach=reach))
        keys = open_ring(settings, now_ms=now_ms)  # once the folder is ours; here, since nobody else is served yet
        store = await open_store(
            settings.data_dir / DATABASE,
            synchronous=settings.synchronous,
            lock=lock,
            ring=keys if keys.mode == "keyed" else None,
        )
    opened.push_async_callback(store.aclose)
    return store, lock, keys


# -- who answers ---------------------------------------------------------------------------------------------------


def _models(settings: Settings, model: ModelClient | None, *, remark: Callable[[str], None] | None) -> Models:
    """Who answers for each name; a script, or `model`, answers for all of them."""
    if model is None and settings.provider == "scripted":
        model = _scripted(settings)
    if model is not None:
        given = Chosen(model, settings.model or model.provider)

        async def only() -> Chosen:
            return given

        return Models(only, remark=remark)
    named = {host.name: _named(host, settings) for host in settings.hosts}
    host, there = split(settings.model, named, default=settings.default_host)
    own = _provider(settings, there if host == PROVIDER else "")
    return Models(own, hosts=named, default_host=settings.default_host, model=settings.model, remark=remark)


def _provider(settings: Settings, model: str) -> Choose:
    async def choose() -> Chosen:
        match settings.provider:
            case "embedded":
                return await _embedded(settings, model)
            case "ollama":
                return await _ollama(settings, model)
            case "openai":
                return await _openai(settings, model)
            case _:
                return await _whoever_answers(settings, model)

    return choose


def _named(host: HostSetting, settings: Settings) -> Choose:
    async def choose() -> Chosen:
        from agent_graph.llm.ollama import OllamaClient
        from agent_graph.llm.openai_compatible import OpenAIClient

        if host.lacks_key:
            message = f'the host "{host.name}" takes its key from {host.key_env}, which is not set'
            raise ModelNotConfigured(message, host=host.name, variable=host.key_env)
        client = OllamaClient if host.kind == "ollama" else OpenAIClient
        made = client(
            host.address, api_key=host.key, model=host.model, parallel=host.parallel,
            max_reply_bytes=settings.limits.value_bytes,
        )  # fmt: skip
        return Chosen(made, host.model)

    return choose


def _scripted(settings: Settings) -> ModelClient:
    from agent_graph.llm.scripted import ScriptedModel

    return ScriptedModel.from_file(Path(str(settings.script)), max_reply_bytes=settings.limits.value_bytes)


def _warnings(settings: Settings) -> tuple[str, ...]:
    """What of the settings is read differently than it is written."""
    from agent_graph.llm.hosts import parse_host

    said = list(parse_host(settings.ollama_host).warnings) if settings.provider in ("auto", "ollama") else []
    for host in settings.hosts:
        said += [f"host {host.name}: {warning}" for warning in host.address.warnings]
    return tuple(said)


async def _openai(settings: Settings, model: str) -> Chosen:
    from agent_graph.llm.choose import choose_model
    from agent_graph.llm.hosts import parse_openai
    from agent_graph.llm.openai_compatible import OpenAIClient

    address = parse_openai(settings.openai_base_url, named=settings.named("openai_base_url"))
    client = OpenAIClient(
        address, api_key=settings.openai_api_key, model=model, max_reply_bytes=settings.limits.value_bytes
    )
    async with AsyncExitStack() as unless_chosen:
        unless_chosen.push_async_callback(client.aclose)
        choice = await choose_model(client, model)
        unless_chosen.pop_all()
    return Chosen(client, choice.model, choice.note)


async def _ollama(settings: Settings, model: str) -> Chosen:
    from agent_graph.llm.choose import choose_model
    from agent_graph.llm.hosts import parse_host
    from agent_graph.llm.ollama import OllamaClient

    client = OllamaClient(
        parse_host(settings.ollama_host, named=settings.named("ollama_host")), api_key=settings.ollama_api_key,
        parallel=settings.ollama_num_parallel, max_reply_bytes=settings.limits.value_bytes,
    )  # fmt: skip
    async with AsyncExitStack() as unless_chosen:
        unless_chosen.push_async_callback(client.aclose)
        if model:
            await client.models()  # is anybody there?
        choice = await choose_model(client, model)
        unless_chosen.pop_all()
    return Chosen(client, choice.model, choice.note)


async def _embedded(settings: Settings, model: str, remark: str = "") -> Chosen:
    from agent_graph.llm.embedded import EmbeddedClient

    limit = settings.limits.value_bytes
    client = EmbeddedClient(settings.models_dir, model=model, max_reply_bytes=limit)
    return Chosen(client, model or (await client.models())[0].name, remark)


async def _whoever_answers(settings: Settings, model: str) -> Chosen:
    """Ollama where one answers, else the embedded model where it is installed; with neither, why, and both ways out.

    A host that was named is meant: nothing answers in its place.
    """
    try:
        return await _ollama(settings, model)
    except (ModelUnreachable, ModelNotConfigured) as refusal:
        away = refusal
    why = f"Ollama: {away.message}"
    if isinstance(away, ModelUnreachable):
        why += f"; {START_IT}"
    if settings.named("ollama_host"):
        other = "the embedded model does not answer for a host that was named (--provider embedded asks it)"
        raise type(away)(f"{why}; {other}", **away.details) from away
    try:
        return await _embedded(settings, model, MECHANICS)
    except (CapabilityMissing, ModelNotFound) as lacks:
        # As the first host's refusal, so that a run that starting Ollama would move on is not lost.
        raise type(away)(f"no model can be found. {why}; {lacks.message}", **away.details) from lacks
