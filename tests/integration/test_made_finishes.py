"""Summaries of finishes that no environment gave: each is a summary or the client's mistake, never the server's."""

import asyncio
import functools

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.types import Finish, FinishReason, Summary
from task_server.wire.errors import BadRequest
from task_server.wire.messages import SummarizeRequest
from task_server.worker.worker import Worker

WORLDS = registry.names()
METRICS = (
    "steps",
    "win",
    "damage",
    "guesses",
    "right_guesses",
    "compat",
    "step_sr",
    "action_f1",
    "calls",
    "F1",
    "rounds",
)
DETAILS = (
    *("opponent", "seat", "stage", "annotation_id", "action_uid", "steps", "flag", "recorded_positives", "ranker"),
    *("positive_rank", "kind", "labels", "type", "category", "level", "driver", "judge", "format", "task_type"),
    *("rating", "strategies", "verdict", "outcome", "language", "setup_failed"),
)
KNOWN_VALUES = ("random", "language", "en", "no_positive", "bm25", "SELECT")

numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1.0, 1e308, -1e308]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(max_size=5) | st.sampled_from(KNOWN_VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
metrics = st.dictionaries(st.sampled_from(METRICS), numbers, max_size=len(METRICS))
details = st.dictionaries(st.sampled_from(DETAILS), values, max_size=len(DETAILS))
scores = st.builds(
    Finish,
    reason=st.sampled_from([reason for reason in FinishReason if not reason.is_fault]),
    score=st.floats(0.0, 1.0),
    metrics=metrics,
    detail=details,
)
faults = st.builds(Finish, reason=st.sampled_from([FinishReason.TASK_ERROR]), metrics=metrics, detail=details)


@functools.cache
def worker() -> Worker:
    """One that holds a task of every world; nothing of it is started."""
    return Worker("w", "http://w", [TaskDefinition(name=world, environment=world, parameters={}) for world in WORLDS])


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(finishes=st.lists(scores | faults, max_size=4).map(tuple))
def test_made_finishes_give_a_summary_or_a_400_in_every_world(finishes: tuple[Finish, ...]) -> None:
    asyncio.run(_check_summaries(SummarizeRequest(finishes=finishes)))


async def _check_summaries(request: SummarizeRequest) -> None:
    for world in WORLDS:
        note(f"of {world}")
        try:
            summary = await worker().summarize(world, request)
        except BadRequest:
            continue
        assert Summary.model_validate_json(summary.model_dump_json()) == summary


@pytest.mark.parametrize("world", ["card_game", "alfworld", "mind2web"])
def test_a_finish_that_lacks_what_the_summary_reads_is_refused_with_its_name(world: str) -> None:
    bare = Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"win": 1.0, "damage": 1.0})
    with pytest.raises(BadRequest, match=f"task '{world}' can't have given these .KeyError: '"):
        asyncio.run(worker().summarize(world, SummarizeRequest(finishes=(bare,))))
