"""Several model hosts: which of them a name reaches, each with its own places, and what is said when one is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_graph.app import diagnose, open_app
from agent_graph.engine.models import Chosen, Models, split
from agent_graph.errors import ModelNotConfigured, ModelNotFound
from agent_graph.llm.scripted import Reply, ScriptedModel
from agent_graph.settings import Settings, load
from tests.fakes.ollama_server import Gate, OllamaServer
from tests.fakes.openai_server import OpenAIServer, chunk, events, refused, told
from tests.fakes.opened import Tools

SECRET = "k-3f9a-never-told"
HUB = "hf.co/Owner/Model:Q4"


@pytest.fixture
async def gpu() -> AsyncIterator[OllamaServer]:
    async with OllamaServer("small:1b", HUB) as running:
        yield running


@pytest.fixture
async def cloud() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer("large", "org/large", key=SECRET) as running:
        yield running


def settings(folder: Path, gpu: OllamaServer, cloud: OpenAIServer, *more: str, **environ: str) -> Settings:
    """Two hosts; `more` lines stand before their tables."""
    text = [
        *more, '[hosts.gpu]\nkind = "ollama"', f'url = "{gpu.url}"', "parallel = 2",
        '[hosts.cloud]\nkind = "openai_compatible"', f'url = "{cloud.url}"', 'key_env = "CLOUD_KEY"', 'model = "large"',
    ]  # fmt: skip
    (folder / "settings.toml").write_text("\n".join(text), encoding="utf-8")
    return load(environ={"AGENT_GRAPH_DATA_DIR": str(folder), "CLOUD_KEY": SECRET} | environ)


def asking(*models: str, **config: Any) -> dict[str, Any]:
    """One node a model, side by side."""
    nodes = [
        {"id": f"n{i}", "type": "llm", "model": model, "prompt": f"<{i}>", "config": {"output_key": f"o{i}"} | config}
        for i, model in enumerate(models)
    ]
    join = {"id": "all", "type": "join", "config": {"inputs": [f"n{i}" for i in range(len(models))], "output": "all"}}
    fork = {"id": "fork", "type": "passthrough"}
    edges = [{"from": "fork", "to": n["id"]} for n in nodes] + [{"from": n["id"], "to": "all"} for n in nodes]
    return {
        "name": "asking", "entry": "fork", "output_key": "all", "nodes": [fork, *nodes, join],
        "edges": [*edges, {"from": "all", "to": "END"}],
    }  # fmt: skip


async def run(tools: Tools, spec: dict[str, Any], **more: Any) -> Any:
    """The run of `spec`, ended, with its events."""
    await tools.ok("graph_create", spec=spec, overwrite=True)
    run_id = (await tools.ok("graph_run_start", graph_id="asking", input="x", **more))["run_id"]
    waited = await tools.ok("graph_run_wait", run_id=run_id, timeout_ms=15_000)
    assert waited["terminal"], waited
    return await tools.ok("graph_run_get", run_id=run_id)


def asked(server: OllamaServer) -> list[str]:
    return [str(chat.body["model"]) for chat in server.chats]


async def test_a_configured_name_is_a_prefix_and_anything_else_the_models_own_name(
    tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer
) -> None:
    async with open_app(settings(tmp_path, gpu, cloud, 'default_host = "gpu"')) as deps:
        spec = asking("small:1b", HUB, "gpu/" + HUB, "cloud/large", "cloud/org/large", "cloud/", "")
        ended = await run(Tools(deps), spec)
    assert ended["status"] == "completed", ended
    assert sorted(asked(gpu)) == sorted(["small:1b", HUB, HUB, "small:1b"])
    assert sorted(asked(cloud)) == ["large", "large", "org/large"]


async def test_the_model_of_the_run_and_of_the_settings_may_name_a_host(
    tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer
) -> None:
    there = settings(tmp_path, gpu, cloud, 'model = "cloud/org/large"', 'provider = "ollama"', OLLAMA_HOST=gpu.url)
    async with open_app(there) as deps:
        assert (await run(Tools(deps), asking("", "small:1b")))["status"] == "completed"
        assert (asked(gpu), asked(cloud)) == (["small:1b"], ["org/large"])
        status = await Tools(deps).ok("graph_status")
    assert status["provider"]["default_model"] == "org/large"
    assert [name for name, health in status["hosts"].items() if health["default"]] == ["cloud"]


async def test_a_fallback_may_be_at_another_host(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    cloud.on("<0>", refused(500, "no"))
    config: Any = {"fallback_models": ["gpu/small:1b"], "retry": {"max_attempts": 1}}
    async with open_app(settings(tmp_path, gpu, cloud)) as deps:
        ended = await run(Tools(deps), asking("cloud/large", **config))
    assert ended["status"] == "completed"
    assert (asked(cloud), asked(gpu)) == (["large"], ["small:1b"])


async def test_the_answers_event_names_the_host(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    async with open_app(settings(tmp_path, gpu, cloud, 'default_host = "gpu"')) as deps:
        tools = Tools(deps)
        ended = await run(tools, asking("cloud/large", "small:1b"))
        stored = await deps.store.runs.events(ended["run_id"], limit=1000)
    answers = [each.body["answer"] for each in stored if each.body["type"] == "model_answered"]
    assert sorted((a["host"], a["performer"]) for a in answers) == [
        ("cloud", "server:openai_compatible/fake"), ("gpu", "server:ollama/fake"),
    ]  # fmt: skip


async def test_each_host_has_places_of_its_own(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    gate = Gate()
    cloud.default = told(gate, *events([chunk("late", finish="stop")]))
    async with open_app(settings(tmp_path, gpu, cloud)) as deps:
        tools = Tools(deps)
        spec = asking(*["cloud/large"] * 6, *["gpu/small:1b"] * 2) | {"max_parallelism": 20}
        task = asyncio.create_task(run(tools, spec))
        await gpu.arrived("<6>")  # while every place at the other is taken
        await gpu.arrived("<7>")
        await cloud.arrived("<", count=4)
        assert cloud.count("<") == 4
        gate.open()
        assert (await task)["status"] == "completed"
    assert (cloud.most_at_once, len(cloud.chats)) == (4, 6)
    assert gpu.most_at_once <= 2


async def test_a_host_without_its_key_is_not_called(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    async with open_app(settings(tmp_path, gpu, cloud, CLOUD_KEY="")) as deps:
        ended = await run(Tools(deps), asking("cloud/large"))
    assert (ended["status"], ended["error"]["code"]) == ("failed", "MODEL_NOT_CONFIGURED")
    assert "CLOUD_KEY, which is not set" in ended["error"]["message"]
    assert cloud.requests == []


async def test_a_name_that_looks_like_a_host_is_told_apart_in_the_refusal(
    tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer
) -> None:
    async with open_app(settings(tmp_path, gpu, cloud, 'default_host = "gpu"')) as deps:
        ended = await run(Tools(deps), asking("gpo/small:1b"))
    assert ended["error"]["code"] == "MODEL_NOT_FOUND"
    assert 'no host is named "gpo" (there are: cloud, gpu)' in ended["error"]["message"]


async def test_a_spec_can_name_no_address(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    async with open_app(settings(tmp_path, gpu, cloud)) as deps:
        refusal = await Tools(deps).refused("graph_create", spec=asking(f"{gpu.url}/small:1b"))
    assert refusal["details"]["issues"][0]["code"] == "FIELD_INVALID"
    assert gpu.requests == []


async def test_status_and_doctor_list_every_host_with_its_state_and_no_key(
    tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer
) -> None:
    there = settings(tmp_path, gpu, cloud, 'default_host = "gpu"')
    cloud.routes["/v1/models"] = refused(403, f"{SECRET} may not")
    async with open_app(there) as deps:
        status = await Tools(deps).ok("graph_status")
    found = {each.name: each for each in await diagnose(there, full=False)}
    assert status["provider"]["host"] == gpu.url
    assert status["hosts"]["gpu"] == {
        "ok": True, "provider": "ollama", "host": gpu.url, "default_model": "",
        "models": ["small:1b", HUB], "default": True,
    }  # fmt: skip
    assert status["hosts"]["cloud"]["ok"] is False
    assert status["hosts"]["cloud"]["error_code"] == "MODEL_REFUSED"
    assert (found["host gpu"].level, found["host cloud"].level) == ("ok", "warning")
    assert SECRET not in json.dumps(status) + str(found)


async def test_a_script_answers_for_every_host(tmp_path: Path, gpu: OllamaServer, cloud: OpenAIServer) -> None:
    model = ScriptedModel([], default=Reply(text="scripted"))
    async with open_app(settings(tmp_path, gpu, cloud), model=model) as deps:
        assert (await run(Tools(deps), asking("cloud/large", "gpu/small:1b")))["final_state"] == ["scripted"] * 2
    assert cloud.requests == gpu.requests == []
    assert sorted(call.model for call in model.calls) == ["cloud/large", "gpu/small:1b"]


async def test_the_provider_openai_is_the_server_of_its_own_settings(tmp_path: Path, cloud: OpenAIServer) -> None:
    environ = {
        "AGENT_GRAPH_DATA_DIR": str(tmp_path), "AGENT_GRAPH_PROVIDER": "openai", "OPENAI_BASE_URL": cloud.url,
        "OPENAI_API_KEY": SECRET,
    }  # fmt: skip
    remarks: list[str] = []
    async with open_app(load(environ=environ), remark=remarks.append) as deps:
        assert (await run(Tools(deps), asking("", "org/large")))["status"] == "completed"
        assert SECRET not in json.dumps(await Tools(deps).ok("graph_status"))
    assert sorted(asked(cloud)) == ["large", "org/large"]
    assert remarks == ["no model is named: using large, the first of 2 installed (--model names another)"]


async def test_what_of_an_address_is_read_differently_is_said(tmp_path: Path, gpu: OllamaServer) -> None:
    environ = {
        "AGENT_GRAPH_DATA_DIR": str(tmp_path), "AGENT_GRAPH_HOSTS__GPU__KIND": "ollama",
        "AGENT_GRAPH_HOSTS__GPU__URL": "10.0.0.5:99999", "AGENT_GRAPH_PROVIDER": "embedded",
    }  # fmt: skip
    remarks: list[str] = []
    async with open_app(load(environ=environ), remark=remarks.append):
        pass
    assert remarks == ['host gpu: url: "99999" is no port, 11434 is used']


@pytest.mark.parametrize(
    ("model", "meant"),
    [("gpu/a", ("gpu", "a")), ("gpu/a/b", ("gpu", "a/b")), ("gpu/", ("gpu", "")), ("gpu", ("", "gpu")),
     ("hf.co/a/b", ("", "hf.co/a/b")), ("/a", ("", "/a")), ("", ("", "")), ("GPU/a", ("", "GPU/a"))],
)  # fmt: skip
def test_only_the_name_of_a_configured_host_is_a_prefix(model: str, meant: tuple[str, str]) -> None:
    assert split(model, {"gpu"}) == meant


async def test_a_choice_that_failed_is_made_again_and_one_slow_host_holds_up_no_other() -> None:
    model, tries, slow = ScriptedModel([]), 0, asyncio.Event()

    async def fails_once() -> Chosen:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ModelNotConfigured("not yet")
        return Chosen(model, "m")

    async def waits() -> Chosen:
        await slow.wait()
        return Chosen(model, "n")

    models = Models(fails_once, hosts={"slow": waits})
    waiting = asyncio.create_task(models.find("slow/"))
    with pytest.raises(ModelNotConfigured):
        await models.find()
    assert models.chosen is None
    assert (await models.find()).model == "m"
    assert (await models.find("x")).model == "x"
    assert tries == 2
    slow.set()
    assert (await waiting).place == "slow"
    await models.aclose()


@pytest.mark.parametrize("model", ["small", "hf.co/x", "gpu/x"])
def test_a_missing_model_is_no_reason_to_speak_of_hosts(model: str) -> None:
    async def choose() -> Chosen:
        raise AssertionError

    error = ModelNotFound("gone")
    assert Models(choose, hosts={"gpu": choose}).explained(error, model) is error
    assert Models(choose).explained(error, "x/y") is error
