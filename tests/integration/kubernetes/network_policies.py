"""Who may speak to whom by Kubernetes' NetworkPolicies: a small reading of networking.k8s.io/v1."""

import ipaddress
from dataclasses import dataclass
from typing import Any

from tests.integration.kubernetes.kustomize import Resource, pod_templates


@dataclass(frozen=True)
class Pod:
    """A pod as policies see it."""

    name: str
    namespace: str
    labels: dict[str, str]
    ports: dict[str, int]
    address: str = "10.0.0.1"

    @property
    def component(self) -> str:
        """Its role among Proctor's parts."""
        return self.labels["app.kubernetes.io/component"]


def pods(resources: list[Resource]) -> list[Pod]:
    """One pod of each maker of pods."""
    return [
        Pod(
            maker["metadata"]["name"],
            maker["metadata"]["namespace"],
            template["metadata"]["labels"],
            {
                port["name"]: port["containerPort"]
                for c in template["spec"]["containers"]
                for port in c.get("ports", ())
            },
        )
        for maker, template in pod_templates(resources)
    ]


def may_speak(resources: list[Resource], one: Pod, other: Pod, port: int) -> bool:
    """Whether `one` may open a connection to a port of `other`: both sides must allow it."""
    policies = [each for each in resources if each["kind"] == "NetworkPolicy"]
    namespaces = {each["metadata"]["name"]: each for each in resources if each["kind"] == "Namespace"}

    def allows(side: str, mine: Pod, peer: Pod) -> bool:
        about = [
            each["spec"]
            for each in policies
            if each["metadata"]["namespace"] == mine.namespace
            and side.title() in each["spec"]["policyTypes"]
            and _chosen(each["spec"]["podSelector"], mine.labels)
        ]
        rules = [rule for spec in about for rule in spec.get(side, ())]
        peers = "to" if side == "egress" else "from"
        return not about or any(
            any(_is_peer(each, mine, peer, namespaces) for each in rule[peers])
            and any(other.ports.get(each["port"], each["port"]) == port for each in rule["ports"])
            for rule in rules
        )

    return allows("egress", one, other) and allows("ingress", other, one)


def _is_peer(rule: Resource, mine: Pod, peer: Pod, namespaces: dict[str, Resource]) -> bool:
    if "ipBlock" in rule:
        address = ipaddress.ip_address(peer.address)
        ranges = [rule["ipBlock"]["cidr"], *rule["ipBlock"].get("except", ())]
        return [address in ipaddress.ip_network(each) for each in ranges] == [True] + [False] * (len(ranges) - 1)
    if "namespaceSelector" in rule:
        labels = namespaces[peer.namespace]["metadata"]["labels"] if peer.namespace in namespaces else {}
        labels = {**labels, "kubernetes.io/metadata.name": peer.namespace}
        if not _chosen(rule["namespaceSelector"], labels):
            return False
    elif peer.namespace != mine.namespace:
        return False
    return _chosen(rule.get("podSelector", {}), peer.labels)


def _chosen(selector: Resource, labels: dict[str, str]) -> bool:
    """matchLabels, and matchExpressions of the operator In; an empty selector chooses all."""
    expressions: list[dict[str, Any]] = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )
