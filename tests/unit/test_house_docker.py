"""The compose files fit the command line, the files beside them, and the promises of their README."""

from pathlib import Path

import click
import pytest
import yaml

from environments.definition import load_tasks
from eval_client.cli.main import proctor
from eval_client.plan import load_plan
from tests.support import ROOT

FOLDER = ROOT / "docker"
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
SOCKET_WORKER = yaml.safe_load((FOLDER / "compose.os.yaml").read_text(encoding="utf-8"))["services"]["worker-os"]


@pytest.mark.parametrize("service", SERVICES)
def test_every_command_is_one_that_proctor_has(service: str) -> None:
    name, *arguments = SERVICES[service]["command"]
    command = proctor.get_command(click.Context(proctor), name)
    assert command is not None
    command.make_context(name, arguments)


@pytest.mark.parametrize("service", SERVICES)
def test_every_container_is_closed(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"]
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert settings["environment"]["PROCTOR_TOKEN"].startswith("${PROCTOR_TOKEN:?")
    assert not {"ports", "privileged", "user", "network_mode"} & set(settings)


@pytest.mark.parametrize("service", sorted(set(SERVICES) - {"client"}))
def test_every_server_has_a_health_check_at_its_own_port(service: str) -> None:
    settings = SERVICES[service]
    command = " ".join(settings["command"]).replace("=", " ").split()
    port = command[command.index("--port") + 1]
    assert f"http://127.0.0.1:{port}/" in settings["healthcheck"]["test"][-1]


@pytest.mark.parametrize("settings", [*SERVICES.values(), SOCKET_WORKER])
def test_every_file_that_is_mounted_exists(settings: dict[str, list[str]]) -> None:
    sources = [volume.split(":")[0] for volume in settings["volumes"]]
    assert [source for source in sources if source.startswith("./") and not (FOLDER / source).is_file()] == []


@pytest.mark.parametrize("name", ["tasks.yaml", "tasks-os.yaml"])
def test_the_task_files_are_valid(name: str) -> None:
    for task in load_tasks(FOLDER / name):
        assert task.samples()


def test_the_plan_names_services_of_the_stack() -> None:
    plan = load_plan(FOLDER / "plan.yaml")
    hosts = [plan.controller, *(endpoint.base_url for endpoint in plan.endpoints)]
    assert {str(host).split("/")[2].split(":")[0] for host in hosts} <= set(SERVICES)
    assert {task.name for task in plan.tasks} <= {task.name for task in load_tasks(FOLDER / "tasks.yaml")}


def test_the_image_copies_only_what_exists_and_runs_as_nobody_special() -> None:
    lines = (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    users = [line for line in lines if line.startswith("USER ")]
    assert users[-1] == users[0] == "USER 10001:10001"


def test_the_folder_does_not_hide_the_docker_package() -> None:
    assert list(Path(FOLDER).glob("*.py")) == []
