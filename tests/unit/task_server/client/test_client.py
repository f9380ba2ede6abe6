"""How long the client waits before it tries again, and what an error says of itself."""

from typing import get_args

import pytest

from task_server.client.reachability import PROBES
from task_server.wire.errors import (
    ApiError,
    InWork,
    NoCapacity,
    NotReady,
    SessionLost,
    UnknownSession,
    WorkerLost,
    refusal_of,
)
from task_server.wire.messages import Problem, ProblemType

TYPES: tuple[ProblemType, ...] = get_args(ProblemType)


def test_probes_of_a_worker_come_ever_more_seldom() -> None:
    assert [PROBES.widest_s(failures) for failures in (1, 2, 3, 5, 6, 10**6)] == [10.0, 20.0, 40.0, 160.0, 300.0, 300.0]


@pytest.mark.parametrize("kind", TYPES)
def test_every_problem_type_maps_to_one_exception_and_back(kind: ProblemType) -> None:
    refusal = refusal_of(Problem(type=kind, title="t", detail="d", retry_after_s=2.0))
    assert isinstance(refusal, ApiError)
    problem = refusal.problem()
    assert (problem.type, problem.detail, problem.retry_after_s) == (kind, "d", 2.0)


def test_only_what_passes_is_retryable_and_a_lost_session_is_one_thing() -> None:
    retryable = {kind for kind in TYPES if refusal_of(Problem(type=kind, title="t")).retryable}
    assert retryable == {"in_work", "no_capacity", "not_ready", "session_held"}
    assert InWork.retryable
    assert NoCapacity.status == 429
    assert NotReady.status == 503
    assert issubclass(UnknownSession, SessionLost)
    assert issubclass(WorkerLost, SessionLost)
