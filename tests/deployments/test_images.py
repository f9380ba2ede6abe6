"""The images of docker/Dockerfile, built for real: small, closed, reproducible, and good at ending."""

import contextlib
import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from tests.deployments.docker_images import EXTRAS, build, image
from tests.e2e.proctor import environment, exits
from tests.pace import slowly, until
from tests.support import BASE_IMAGE, ROOT

pytestmark = pytest.mark.images

ROLES = ("controller", "client", "worker", "agents", "worker-db")
CLOSED: dict[str, Any] = {
    "network_mode": "none",
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
}
LISTEN = ("--host", "127.0.0.1", "--port", "8000")
DIGEST = "cd / && find opt/proctor opt/packages -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum"


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    """The engine of the tests."""
    with contextlib.closing(docker.from_env(timeout=int(slowly(120)))) as client:
        yield client


@contextlib.contextmanager
def started(engine: docker.DockerClient, *command: str, target: str, **more: Any) -> Iterator[Container]:
    """A container under way, without any right; removed afterwards."""
    container = engine.containers.run(image(target), list(command), detach=True, tmpfs={"/tmp": ""}, **CLOSED, **more)
    try:
        yield container
    finally:
        container.remove(force=True)


def health(container: Container, least: str) -> str:
    """The health of a container once it is not `least` any more."""

    def found() -> str:
        container.reload()
        return str(container.attrs["State"]["Health"]["Status"])

    until(lambda: found() != least, 120, seen=container.logs)
    return found()


@pytest.mark.parametrize("target", ROLES)
def test_every_role_is_small_and_starts_without_rights_on_a_read_only_root(
    engine: docker.DockerClient, target: str
) -> None:
    said = engine.containers.run(image(target), "--version", remove=True, **CLOSED)
    assert said.decode().startswith("proctor ")
    found = engine.images.get(image(target))
    assert found.attrs["Config"]["User"] == "10001:10001"
    tools = engine.containers.run(
        image(target), ["-c", "command -v gcc pip || true"], entrypoint="sh", remove=True, **CLOSED
    )
    assert tools == b""


@pytest.mark.parametrize("target", [*ROLES, "store", "prometheus"])
def test_the_size_of_an_image_is_as_the_page_says(engine: docker.DockerClient, target: str) -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    told = re.search(rf"^\| [^|]*`proctor-{target}`[^|]*\| (\d+) MB", page, re.MULTILINE)
    assert told
    assert engine.images.get(image(target)).attrs["Size"] / 1e6 == pytest.approx(int(told[1]), rel=0.15)


@pytest.mark.parametrize(("volumes", "warned"), [(["/runs"], []), ([], ["runs-folder-container"])])
def test_the_doctor_of_a_client_warns_where_no_volume_holds_its_runs_and_of_nothing_else(
    engine: docker.DockerClient, volumes: list[str], warned: list[str]
) -> None:
    said = engine.containers.run(
        image("client"), ["doctor", "--json"], remove=True, network_mode="none", volumes=volumes
    )
    problems = {each["id"] for each in json.loads(said)["findings"] if each["status"] in ("warn", "fail")}
    assert sorted(problems - {"disk-short"}) == warned  # that is the machine's


def test_a_controller_becomes_healthy_and_ends_at_sigterm_with_0(engine: docker.DockerClient) -> None:
    with started(engine, "controller", *LISTEN, target="controller") as container:
        assert health(container, "starting") == "healthy"
        assert container.exec_run(["healthy", "8001", "/readyz"]).exit_code == 1
        assert container.exec_run(["healthy", "8000", "/nowhere"]).exit_code == 1
        container.kill("SIGTERM")
        assert container.wait(timeout=slowly(30))["StatusCode"] == 0


def test_the_client_shows_runs_that_are_mounted_for_reading(engine: docker.DockerClient, tmp_path: Path) -> None:
    task = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: naive, builtin: naive}}]\ntasks: [{task}]\n")
    exits(0, "run", "plan.yaml", "--name", "played", "--limit", "1", "-q", cwd=tmp_path)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # the container's user is another
    mounted = {str(tmp_path / "runs"): {"bind": "/runs", "mode": "ro"}}
    with started(engine, "view", "-o", "/runs", *LISTEN, target="client", volumes=mounted) as container:
        address = "http://127.0.0.1:8000/runs/played"
        until(lambda: container.exec_run(["healthy", "8000", "/"]).exit_code == 0, seen=container.logs)
        read = f"from urllib.request import urlopen; print(urlopen('{address}').read().decode())"
        page = container.exec_run(["/opt/packages/bin/python", "-c", read])
        assert page.exit_code == 0, page.output
        assert b"db-own" in page.output


def test_two_builds_from_the_same_inputs_hold_the_same_files(engine: docker.DockerClient) -> None:
    build("controller", "proctor-controller:again", afresh=True)
    digests = [
        engine.containers.run(name, ["-c", DIGEST], entrypoint="sh", remove=True, **CLOSED)
        for name in (image("controller"), "proctor-controller:again")
    ]
    engine.images.remove("proctor-controller:again")
    assert digests[0] == digests[1]


def test_make_images_tags_every_role_with_the_version(engine: docker.DockerClient) -> None:
    built = {target: engine.images.get(image(target)).id for target in ROLES}
    settings = {"BASE": BASE_IMAGE, "BUILD_NETWORK": "host", "DOCKER_BUILDKIT": "0", "EXTRAS": ""}
    made = subprocess.run(
        ["make", "images"], cwd=ROOT, env=environment(**settings), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    assert "undefined secret" not in made.stderr
    tags = {target: [f"proctor-{target}:{tag}" for tag in (version("proctor"), "latest")] for target in ROLES}
    tagged = {target: {engine.images.get(name).id for name in names} for target, names in tags.items()}
    for name in itertools.chain.from_iterable(tags.values()):
        engine.images.remove(name)
    assert tagged == {target: {found} for target, found in built.items()}


def test_an_image_has_the_extras_that_its_build_names(engine: docker.DockerClient) -> None:
    name = "proctor-client:extras"
    build("client", name, extras=EXTRAS)
    has = "from importlib.util import find_spec; print(bool(find_spec('opentelemetry.sdk')))"
    found = [
        engine.containers.run(each, ["-c", has], entrypoint="/opt/packages/bin/python", remove=True, **CLOSED)
        for each in (image("client"), name)
    ]
    engine.images.remove(name)
    assert found == [b"False\n", b"True\n"]
