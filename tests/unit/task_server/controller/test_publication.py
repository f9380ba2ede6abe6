"""The published list of tasks: no change is lost, and a question out of turn brings no answer forward."""

import asyncio

from task_server.controller.placement import Placement
from task_server.controller.publication import Publication
from task_server.wire.messages import TaskCapacity, TasksQuery
from task_server.wire.worker_messages import Heartbeat

LONG_S = 60.0
"""The longest wait that the wire allows."""


def clock() -> float:
    """It stands still, so that no worker is taken for lost."""
    return 0.0


def beat(placement: Placement, sequence: int, free: int) -> None:
    task = TaskCapacity(name="t", environment="e", total=9, free=free, waiting=None, digest="d")
    heartbeat = Heartbeat(worker="w", boot="b", url="http://127.0.0.1:1", sequence=sequence, tasks=(task,), sessions=())
    placement.heartbeat(heartbeat, clock())


async def test_a_change_that_somebody_has_read_meanwhile_is_published_nevertheless() -> None:
    placement = Placement(10.0)
    publication = Publication(placement, clock)
    first = await publication.answer(TasksQuery())
    beat(placement, 1, free=1)
    placement.capacities()  # as /metrics does
    publication.changed()
    answer = await publication.answer(TasksQuery(after=first.version, wait_s=LONG_S))
    assert [task.free for task in answer.tasks] == [1]


async def test_a_question_without_a_version_is_answered_by_what_is_so_and_wakes_no_other() -> None:
    placement = Placement(10.0)
    publication = Publication(placement, clock)
    version = (await publication.answer(TasksQuery())).version
    following = asyncio.create_task(publication.answer(TasksQuery(after=version, wait_s=LONG_S)))
    await asyncio.sleep(0)
    beat(placement, 1, free=3)
    asked = await publication.answer(TasksQuery())
    assert ([task.free for task in asked.tasks], asked.version) == ([3], version)
    assert not following.done()
    publication.changed()
    assert [task.free for task in (await following).tasks] == [3]
