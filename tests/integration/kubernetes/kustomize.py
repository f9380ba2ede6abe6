"""Builds a kustomization as `kubectl kustomize` does, as far as ours go; refuses whatever it doesn't know.

Debian's kubectl is too old for current kustomizations, so that tests can't count on a real one.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Resource = dict[str, Any]

CLUSTER_WIDE = {"Namespace"}
KNOWN = {
    *("apiVersion", "kind", "namespace", "resources", "configMapGenerator", "generatorOptions"),
    *("images", "replicas", "patches"),
}


def build(folder: Path) -> list[Resource]:
    """Every resource of a kustomization, in no particular order."""
    (asked,) = _documents(folder / "kustomization.yaml")
    assert set(asked) <= KNOWN, f"{folder}: this builder doesn't know {sorted(set(asked) - KNOWN)}"
    assert "configMapGenerator" not in asked or asked["generatorOptions"] == {"disableNameSuffixHash": True}
    built = [each for name in asked["resources"] for each in _resources(folder / name)]
    built += [_config_map(folder, each) for each in asked.get("configMapGenerator", ())]
    for each in built:
        if each["kind"] not in CLUSTER_WIDE:
            each["metadata"]["namespace"] = asked["namespace"]
    for patch in asked.get("patches", ()):
        (operations,) = _documents(folder / patch["path"])
        _patched(built, patch["target"], operations)
    for replicas in asked.get("replicas", ()):
        named = [each for each in built if each["metadata"]["name"] == replicas["name"] and "replicas" in each["spec"]]
        assert named, f"{folder}: replicas of {replicas['name']}: no such resource"
        for each in named:
            each["spec"]["replicas"] = replicas["count"]
    for image in asked.get("images", ()):
        using = [each for each in containers(built) if each["image"] == image["name"]]
        assert using, f"{folder}: no container has the image {image['name']}"
        for container in using:
            container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
    return built


def pod_templates(resources: list[Resource]) -> Iterator[tuple[Resource, Resource]]:
    """What makes pods, and its template."""
    for each in resources:
        if "template" in each.get("spec", {}):
            yield each, each["spec"]["template"]


def containers(resources: list[Resource]) -> Iterator[Resource]:
    """The containers of all pods."""
    for _, template in pod_templates(resources):
        yield from template["spec"].get("initContainers", [])
        yield from template["spec"]["containers"]


def _resources(path: Path) -> list[Resource]:
    if path.is_dir():
        return build(path)
    return [each for each in _documents(path) if each is not None]


def _documents(path: Path) -> list[Any]:
    return list(yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def _config_map(folder: Path, asked: Resource) -> Resource:
    files = [name.rpartition("=") for name in asked["files"]]
    data = {key or name: (folder / name).read_text(encoding="utf-8") for key, _, name in files}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": asked["name"]}, "data": data}


def _patched(resources: list[Resource], target: Resource, operations: list[Resource]) -> None:
    """JSON patches (RFC 6902): add, replace and remove."""
    chosen = [
        each for each in resources if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])
    ]
    assert chosen, f"a patch is for {target}, which is not there"
    for resource in chosen:
        for operation in operations:
            *way, last = operation["path"].lstrip("/").split("/")
            place: Any = resource
            for step in way:
                place = place[int(step) if isinstance(place, list) else step]
            match operation["op"]:
                case "add":
                    place[last] = copy.deepcopy(operation["value"])
                case "replace":
                    assert last in place
                    place[last] = copy.deepcopy(operation["value"])
                case "remove":
                    del place[last]
                case other:
                    raise AssertionError(f"this builder doesn't know the operation {other}")
