"""An endpoint that fails in every way an endpoint can, by seed."""

import pytest

from tests.e2e.scripted import reply
from tests.faults.parts.farm import Farm
from tests.faults.parts.proxy import Fault
from tests.pace import slowly

SLOW_DOWN = reply(429, b'{"error": {"message": "slow down"}}', "Retry-After: 0")
BROKEN = reply(500, b'{"error": {"message": "oops"}}')
AWAY = reply(503, b"<html>no JSON at all</html>")
GARBAGE = reply(200, b"{{{{ not json")
NO_CHOICE = reply(200, b'{"choices": []}')
WRONG_TYPES = reply(200, b'{"choices": [{"message": "hello"}], "usage": "much"}')
OVERSIZED = reply(200, b'{"choices": "' + b"x" * 20_000_000 + b'"}')
NOT_HTTP = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
ANSWERS = (SLOW_DOWN, BROKEN, AWAY, GARBAGE, NO_CHOICE, WRONG_TYPES, OVERSIZED)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_an_endpoint_does_costs_retries_and_never_a_score(parts: Farm, seed: int) -> None:
    parts.start(deadline_s=slowly(2))
    link = parts.link("agents")
    link.chance.seed(seed)
    link.faults += [Fault("answer", "POST", chance=0.03, body=body) for body in ANSWERS]
    link.faults += [
        Fault("answer", "POST", chance=0.02, body=NOT_HTTP),
        Fault("silence", "POST", chance=0.02),
        Fault("endless", "POST", chance=0.02),
        Fault("truncate", "POST", chance=0.02),
        Fault("drop", "POST", chance=0.02),
        Fault("drop_reply", "POST", chance=0.02),
        Fault("half_close", "POST", chance=0.02),
        Fault("throttle", "POST", chance=0.02, seconds=0.5),
    ]
    parts.completed(parts.begin())
    parts.verify()
    assert set(parts.attempts()) == {1}
