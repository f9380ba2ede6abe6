"""The compose files fit the command line, the files beside them, and the promises of their README."""

import re
from pathlib import Path, PurePath

import click
import docker
import pytest
import yaml

from eval_client.cli.main import proctor
from eval_client.plan.load import load_plan
from proctor.config.task import load_tasks
from tests.support import ROOT

FOLDER = ROOT / "docker"
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
OURS = sorted(set(SERVICES) - {"store", "prometheus"})
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("service", [name for name in OURS if "command" in SERVICES[name]])
def test_every_command_is_one_that_proctor_has(service: str) -> None:
    name, *arguments = SERVICES[service]["command"]
    command = proctor.get_command(click.Context(proctor), name)
    assert command is not None
    command.make_context(name, arguments)


def test_every_variable_of_a_manifest_is_one_that_is_read() -> None:
    folders = ("agent_server", "environments", "eval_client", "proctor", "task_server")
    sources = "".join(path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py"))
    manifests = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "kubernetes").rglob("*.yaml"))
    named = {name.removesuffix("_FILE") for name in re.findall(r"name: ([A-Z][A-Z_]+),", manifests)}
    theirs = {"DOCKER_HOST", "PGDATA", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
    assert len(named) > 5
    assert [name for name in named - theirs if f'"{name}"' not in sources and f"_env: {name}" not in manifests] == []


@pytest.mark.parametrize("service", OURS)
def test_every_container_of_ours_is_closed_and_its_secrets_are_files(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"]
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "user", "network_mode"} & set(settings)
    named = {name: value for name, value in settings["environment"].items() if "TOKEN" in name or "STORE" in name}
    assert named
    assert all(name.endswith("_FILE") for name in named)
    assert sorted(named.values()) == sorted(f"/run/secrets/{secret}" for secret in settings["secrets"])


@pytest.mark.parametrize("service", [name for name in OURS if name.startswith("worker")])
def test_no_worker_is_given_the_clients_token_or_reaches_the_store(service: str) -> None:
    assert SERVICES[service]["secrets"] == ["worker-token", "metrics-token"]
    assert SERVICES[service]["networks"] == ["proctor"]


@pytest.mark.parametrize("service", [name for name in SERVICES if "ports" in SERVICES[name]])
def test_ports_are_published_at_loopback_unless_told_otherwise(service: str) -> None:
    assert all(port.startswith("${PUBLISH:-127.0.0.1}:") for port in SERVICES[service]["ports"])


@pytest.mark.parametrize("service", SERVICES)
def test_every_log_is_bounded_and_ours_have_the_format_and_level_that_are_set(service: str) -> None:
    assert SERVICES[service]["logging"]["options"].keys() == {"max-size", "max-file"}
    if service in OURS:
        assert {"PROCTOR_LOG_FORMAT", "PROCTOR_LOG_LEVEL"} < SERVICES[service]["environment"].keys()


@pytest.mark.parametrize("service", OURS)
def test_every_file_that_is_mounted_exists(service: str) -> None:
    volumes = [volume.replace("${PROCTOR_CONFIG:-.}/", "./") for volume in SERVICES[service].get("volumes", [])]
    sources = [volume.split(":")[0] for volume in volumes]
    assert [source for source in sources if source.startswith("./") and not (FOLDER / source).exists()] == []


@pytest.mark.parametrize("name", ["tasks.yaml", "tasks-agents.yaml", "tasks-db.yaml", "tasks-os.yaml"])
def test_the_task_files_are_valid(name: str) -> None:
    for task in load_tasks(FOLDER / name):
        assert task.opened().samples()


def test_the_agents_know_every_task_that_workers_serve_with_the_same_settings() -> None:
    served = [task for name in ("tasks", "tasks-db", "tasks-os") for task in load_tasks(FOLDER / f"{name}.yaml")]
    known = {task.name: task for task in load_tasks(FOLDER / "tasks-agents.yaml")}
    assert {task.name for task in served} == set(known)
    for task in served:
        assert (task.environment, task.parameters) == (known[task.name].environment, known[task.name].parameters)


def test_the_plan_names_services_of_the_stack() -> None:
    plan = load_plan(FOLDER / "plan.yaml")
    hosts = [plan.controller, *(endpoint.base_url for endpoint in plan.endpoints)]
    assert {str(host).split("/")[2].split(":")[0] for host in hosts} <= set(SERVICES)
    assert {task.name for task in plan.tasks} <= {task.name for task in load_tasks(FOLDER / "tasks-agents.yaml")}


def test_the_images_copy_only_what_exists_and_the_build_may_see() -> None:
    copied = [
        word
        for line in DOCKERFILE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
        if "[" not in word  # may be missing
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    seen = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in copied if not {f"!{each}" for each in (name, *PurePath(name).parents)} & set(seen)] == []


def test_every_image_of_ours_runs_as_nobody_special() -> None:
    for stage in DOCKERFILE.split("\nFROM ")[1:]:
        users = [line.split()[1] for line in stage.splitlines() if line.startswith("USER ")]
        assert not users or users[-1] in ("10001:10001", "postgres", "prometheus"), stage


def test_the_folder_does_not_hide_the_docker_package() -> None:
    assert not (FOLDER / "__init__.py").exists()
    assert not Path(docker.__file__).is_relative_to(FOLDER)
