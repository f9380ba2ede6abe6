"""Every installed environment meets every requirement, in both protocols and on every engine it offers.

Its other profiles are checked by tests/acceptance/test_tools_protocol.py.
"""

import pytest

from proctor import registry
from proctor.conformance.check import check

ENGINES = {
    "db": [
        pytest.param({"engine": "sqlite"}, id="db-sqlite"),
        pytest.param({"engine": "mariadb"}, id="db-mariadb", marks=pytest.mark.mariadb),
    ],
    "os": [
        pytest.param({"engine": "namespace"}, id="os-namespace"),
        pytest.param({"engine": "docker"}, id="os-docker", marks=pytest.mark.docker),
    ],
}
"""The configurations to check; an environment that is not listed is checked as it comes."""

SAMPLES = {"docker": 1, "namespace": 1}
"""engine -> how many samples are played, where fewer than three; acceptance/test_all_environments.py plays all"""

LEFT_OUT = {
    "simulbench": [
        "the other protocol: protocol: the agent's reply is what is judged, so there are no functions; set it to text"
    ]
}
"""What the check of an environment says it has left out: one of its protocols."""

CASES = [
    pytest.param(name, *case.values, id=case.id, marks=case.marks)
    for name in registry.names()
    for case in ENGINES.get(name, [pytest.param({}, id=name)])
]


@pytest.mark.parametrize(("name", "parameters"), CASES)
async def test_meets_every_requirement(name: str, parameters: dict[str, object]) -> None:
    samples = SAMPLES.get(str(parameters.get("engine")), 3)
    results = [result async for result in check(registry.load(name)(**parameters), samples)]
    expected = LEFT_OUT.get(name, [])
    assert [f"{result.name}: {result.detail}" for result in results if result.state != "ok"] == expected
    for protocol in ("",) if name in LEFT_OUT else ("text: ", "tools: "):
        assert len([result for result in results if result.name.startswith(protocol)]) > 10


def test_every_environment_of_ours_is_installed() -> None:
    assert set(ENGINES) <= set(registry.names())
