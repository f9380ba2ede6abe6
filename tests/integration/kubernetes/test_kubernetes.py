"""The Kubernetes manifests: their schemas, and what only a cluster would show else, when it is too late.

No cluster can run here. What is checked is that the manifests are valid, fit each other, and fit our programs.
"""

import asyncio
import functools
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from eval_client.cli.main import proctor
from eval_client.plan.load import load_plan
from proctor.config.task import TaskDefinition, load_tasks
from task_server.shares import Shares
from tests.integration.kubernetes.kustomize import Resource, build, containers, pod_templates
from tests.integration.kubernetes.network_policies import Pod, may_speak, pods
from tests.support import ROOT
from tools.docs import http_api

utils.schema_contents = functools.cache(utils.schema_contents)  # else 4 MB of JSON are read anew for each resource
FOLDER = ROOT / "docker" / "kubernetes"
FOLDERS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml"))
BUILT = {name: build(FOLDER / name) for name in FOLDERS}
EVERYTHING = [*BUILT["small"], *BUILT["run"], *BUILT["sandboxes"], *BUILT["autoscaled"]]
"""What may stand in one cluster; a resource of two overlays stands here twice."""
KUBECTL = shutil.which("kubectl")
CHART = [(name, template["spec"]) for name in FOLDERS for _, template in pod_templates(BUILT[name])]


def of_kind(kind: str, resources: list[Resource] = EVERYTHING) -> list[Resource]:
    return [each for each in resources if each["kind"] == kind]


def named(kind: str, name: str, namespace: str) -> Resource:
    """The resource of a kind and name; the first where overlays have it more than once."""
    found = [each for each in of_kind(kind) if each["metadata"]["name"] == name]
    found = [each for each in found if each["metadata"].get("namespace") == namespace]
    assert found, f"no {kind} {name} in {namespace}"
    return found[0]


def within(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def options(container: Resource) -> dict[str, str]:
    """`--name value` of a command line."""
    return dict(zip(container["args"], container["args"][1:], strict=False))


@pytest.mark.parametrize("name", FOLDERS)
def test_every_resource_has_the_schema_of_its_kind(name: str) -> None:
    for each in BUILT[name]:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.skipif(KUBECTL is None, reason="no kubectl; its kustomize is an oracle for our own builder of these tests")
@pytest.mark.parametrize("name", FOLDERS)
def test_kustomize_builds_the_same(name: str) -> None:
    assert KUBECTL is not None
    said = json.loads(subprocess.check_output([KUBECTL, "version", "--client", "--output=json"], stderr=-3))
    if not str(said.get("kustomizeVersion", "")).startswith("v5"):
        pytest.skip("this kubectl is too old for these kustomizations")
    text = subprocess.check_output([KUBECTL, "kustomize", str(FOLDER / name)], text=True)

    def in_order(resources: Iterator[Resource] | list[Resource]) -> list[str]:
        return sorted(json.dumps(each, sort_keys=True) for each in resources)

    assert in_order(list(yaml.safe_load_all(text))) == in_order(BUILT[name])


def test_what_makes_pods_selects_them() -> None:
    for maker, template in pod_templates(EVERYTHING):
        if maker["kind"] != "Job":
            assert within(maker["spec"]["selector"]["matchLabels"], template["metadata"]["labels"])
        for spread in template["spec"].get("topologySpreadConstraints", ()):
            assert within(spread["labelSelector"]["matchLabels"], template["metadata"]["labels"])
    selectors = [json.dumps(each["spec"]["selector"]) for each in of_kind("Deployment", BUILT["base"])]
    assert len(set(selectors)) == len(selectors)


def test_services_and_disruption_budgets_select_pods_that_have_their_ports() -> None:
    for service in of_kind("Service"):
        chosen = [pod for pod in pods(EVERYTHING) if within(service["spec"]["selector"], pod.labels)]
        assert chosen
        for port in service["spec"]["ports"]:
            assert all(port["targetPort"] in pod.ports for pod in chosen)
    for budget in of_kind("PodDisruptionBudget"):
        chosen = [pod for pod in pods(EVERYTHING) if within(budget["spec"]["selector"]["matchLabels"], pod.labels)]
        assert len({pod.name for pod in chosen}) == 1, budget


def test_every_kind_of_worker_has_a_disruption_budget() -> None:
    workers = {pod.name for pod in pods(EVERYTHING) if pod.component == "worker"}
    assert workers == {each["metadata"]["name"] for each in of_kind("PodDisruptionBudget")}


@pytest.mark.parametrize("name", FOLDERS)
def test_whatever_a_pod_names_exists(name: str) -> None:
    for maker, template in pod_templates(BUILT[name]):
        spec, namespace = template["spec"], maker["metadata"]["namespace"]
        named("ServiceAccount", spec["serviceAccountName"], namespace)
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for volume in volumes.values():
            if "configMap" in volume:
                named("ConfigMap", volume["configMap"]["name"], namespace)
        claims = {claim["metadata"]["name"] for claim in maker["spec"].get("volumeClaimTemplates", ())}
        for container in spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == {*volumes, *claims}


@pytest.mark.parametrize(("name", "spec"), CHART)
def test_every_pod_is_closed(name: str, spec: Resource) -> None:
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert any("hostPath" in volume for volume in spec["volumes"]) == (name == "sandboxes")
    for container in spec["containers"]:
        closed = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == closed
        assert container["resources"]["limits"]["memory"]
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}


@pytest.mark.parametrize("container", [each for each in containers(EVERYTHING) if "args" in each])
def test_every_command_line_is_one_that_proctor_takes(container: Resource) -> None:
    name, *arguments = [each.replace("$(JOB_COMPLETION_INDEX)", "0") for each in container["args"]]
    command = proctor.get_command(click.Context(proctor), name)
    assert command is not None
    command.make_context(name, arguments)


def test_the_pods_of_the_job_play_each_part_once() -> None:
    (job,) = of_kind("Job", BUILT["run"])
    spec, (client,) = job["spec"], job["spec"]["template"]["spec"]["containers"]
    assert spec["completionMode"] == "Indexed"
    assert spec["parallelism"] == spec["completions"]
    (part,) = [each for each in client["args"] if each.startswith("--part=")]
    assert part == f"--part=$(JOB_COMPLETION_INDEX)+1/{spec['completions']}"


def test_every_probe_asks_a_port_and_a_route_that_there_is() -> None:
    routes, agents = (asyncio.run(served())["paths"] for served in (http_api.task_servers, http_api.agent_server))
    for container in containers(EVERYTHING):
        ports = {port["name"]: str(port["containerPort"]) for port in container.get("ports", ())}
        for probe in (container.get("readinessProbe"), container.get("livenessProbe")):
            if probe is not None and "httpGet" in probe:
                path = probe["httpGet"]["path"]
                assert path in (agents if container["name"] == "agents" else routes)
                assert ports[probe["httpGet"]["port"]] == options(container)["--port"]


def test_a_probe_never_kills_a_worker_that_waits_for_something() -> None:
    probes = [container["livenessProbe"] for container in containers(EVERYTHING) if container["name"] == "worker"]
    assert {probe["httpGet"]["path"] for probe in probes} == {"/healthz"}


def test_variables_that_name_files_name_secrets() -> None:
    variables = [variable for container in containers(EVERYTHING) for variable in container.get("env", ())]
    files = [variable["value"] for variable in variables if variable["name"].endswith("_FILE")]
    assert files
    assert [path for path in files if not path.startswith("/etc/proctor/secrets/")] == []


def test_no_secret_stands_in_a_manifest_and_the_guide_makes_each() -> None:
    assert of_kind("Secret") == []
    guide = (ROOT / "docs" / "how-to" / "orchestrators.md").read_text(encoding="utf-8").replace("\\\n", " ")
    for maker, template in pod_templates(EVERYTHING):
        secret = next(volume["secret"] for volume in template["spec"]["volumes"] if "secret" in volume)
        made = re.search(
            rf"kubectl -n {maker['metadata']['namespace']} create secret generic {secret['secretName']} (.*)", guide
        )
        assert made is not None, f"docs/how-to/orchestrators.md does not make the secret {secret['secretName']}"
        used = [v["value"] for c in template["spec"]["containers"] for v in c["env"] if v["name"].endswith("_FILE")]
        assert {Path(path).name for path in used} == set(re.findall(r"--from-(?:literal|file)=([a-z-]+)=", made[1]))


def test_the_controller_is_replaced_and_workers_are_doubled_by_an_update() -> None:
    strategies = {each["metadata"]["name"]: each["spec"].get("strategy") for each in of_kind("Deployment")}
    assert strategies["controller"] == {"type": "Recreate"}
    assert named("Deployment", "controller", "proctor")["spec"]["replicas"] == 1
    assert strategies["worker"] == strategies["worker-db"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_servers_are_given_longer_to_end_than_they_take() -> None:
    for _, template in pod_templates(EVERYTHING):
        for container in template["spec"]["containers"]:
            if container["name"] == "worker":
                assert template["spec"]["terminationGracePeriodSeconds"] > float(options(container)["--grace"]) + 10


def tasks_of(container: Resource, namespace: str, folder: Path) -> tuple[TaskDefinition, ...]:
    """The tasks that a server is given by its config map."""
    file = folder / "tasks.yaml"
    data = named("ConfigMap", "tasks", namespace)["data"]
    file.write_text(data[Path(options(container)["--tasks"]).name], encoding="utf-8")
    return load_tasks(file)


def test_task_files_and_the_plan_are_valid_and_name_services_of_the_cluster(tmp_path: Path) -> None:
    served = set()
    for maker, template in pod_templates(EVERYTHING):
        for container in template["spec"]["containers"]:
            if container["name"] in ("worker", "agents"):
                served |= {task.name for task in tasks_of(container, maker["metadata"]["namespace"], tmp_path)}
    plan = load_plan(FOLDER / "run" / "plan.yaml")
    assert {task.name for task in plan.tasks} <= served
    services = {f"http://{each['metadata']['name']}:{each['spec']['ports'][0]['port']}" for each in of_kind("Service")}
    assert str(plan.controller) in services
    assert {str(endpoint.base_url).removesuffix("/v1") for endpoint in plan.endpoints} <= services
    for container in containers(EVERYTHING):
        controller = options(container).get("--controller") if "args" in container else None
        assert controller is None or controller.replace("controller.proctor:", "controller:") in services


def test_each_autoscaler_follows_the_demand_for_its_workers_tasks_by_their_capacity(tmp_path: Path) -> None:
    exposed = {metric.name for metric in Shares().metrics(0.0)}
    deployments = {each["metadata"]["name"]: each for each in of_kind("Deployment", BUILT["autoscaled"])}
    for scaler in of_kind("HorizontalPodAutoscaler"):
        target = deployments[scaler["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in target["spec"]
        (container,) = target["spec"]["template"]["spec"]["containers"]
        follows = {}
        for metric in scaler["spec"]["metrics"]:
            assert metric["external"]["metric"]["name"] in exposed
            task = metric["external"]["metric"]["selector"]["matchLabels"]["task"]
            follows[task] = int(metric["external"]["target"]["averageValue"])
        tasks = tasks_of(container, target["metadata"]["namespace"], tmp_path)
        assert follows == {task.name: task.capacity for task in tasks}


def test_every_image_is_a_target_of_the_dockerfile_in_this_version() -> None:
    targets = set(re.findall(r"(?m)^FROM \S+ AS (\S+)$", (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for container in containers(EVERYTHING):
        name, _, tag = container["image"].partition(":")
        if name != "postgres":
            assert (name.removeprefix("proctor-") in targets, tag) == (True, version)


@pytest.mark.parametrize(
    ("one", "other", "port", "allowed"),
    [
        *(("client", server, 8000, True) for server in ("controller", "worker", "worker-db", "worker-os", "agents")),
        *((worker, "controller", 8000, True) for worker in ("worker", "worker-db", "worker-os")),
        *(("controller", worker, 8000, True) for worker in ("worker", "worker-db", "worker-os")),
        ("client", "store", 5432, True),
        *((server, "store", 5432, False) for server in ("controller", "worker", "worker-db", "worker-os", "agents")),
        *((server, "agents", 8000, False) for server in ("controller", "worker", "worker-db", "worker-os", "store")),
        *((server, "worker", 8000, False) for server in ("worker", "worker-db", "worker-os", "agents", "store")),
        *((server, "controller", 8000, False) for server in ("agents", "store")),
        ("controller", "worker", 22, False),
    ],
)
def test_parts_reach_each_other_as_far_as_they_must(one: str, other: str, port: int, allowed: bool) -> None:
    resources = [*BUILT["small"], *BUILT["run"], *BUILT["sandboxes"]]
    by_name = {pod.name.replace("run-first", "client"): pod for pod in pods(resources)}
    assert may_speak(resources, by_name[one], by_name[other], port) is allowed


def test_nobody_but_a_client_leaves_the_cluster() -> None:
    resources = [*BUILT["small"], *BUILT["run"], *BUILT["sandboxes"]]
    outside = Pod("outside", "nowhere", {}, {}, "203.0.113.7")
    metadata = Pod("metadata", "nowhere", {}, {}, "169.254.169.254")
    assert [pod.component for pod in pods(resources) if may_speak(resources, pod, outside, 443)] == ["client"]
    assert not any(may_speak(resources, pod, metadata, 443) for pod in pods(resources))
    assert not any(may_speak(resources, outside, pod, port) for pod in pods(resources) for port in pod.ports.values())
    for namespace in ("proctor", "proctor-sandboxes"):
        stranger = Pod("stranger", namespace, {}, {}, "10.0.0.9")
        assert not any(may_speak(resources, stranger, pod, 8000) for pod in pods(resources))
        assert not any(may_speak(resources, pod, stranger, 8000) for pod in (*pods(resources), outside))
