"""A store with a run of every kind of trial that exports must tell apart, written without playing it."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from eval_client.plan.plan import Plan
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall, Usage
from task_server.wire.messages import Act, Stop

RUN, TASKS = "made", ("walk", "talk")
SECRET = "canary-of-a-key-in-an-address"
THOUGHT = {"ann": "canary-thought-of-ann", "bob": "canary-thought-of-bob"}
ECHO = "canary-of-an-echo"
DOOR = Tool(name="open_door", parameters={"type": "object", "properties": {"door": {"type": "string"}}})
PLAN = {
    "name": RUN,
    "endpoints": [{"name": "lab", "base_url": f"https://{SECRET}.example/v1"}],
    "agents": [
        {"name": "ann", "endpoint": "lab", "model": "org/ann-7b", "sampling": {"temperature": 0.5}},
        {"name": "bob", "endpoint": f"https://{SECRET}.example/v1", "model": "bob"},
    ],
    "tasks": [{"name": task, "environment": "ltp"} for task in TASKS],
    "limits": {"trial": {"turns": 4}},
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 40, "reasoning_tokens": 5}
EXAMPLE = (
    Message(role="system", content="You walk."),
    Message(role="user", content="Example: door 1."),
    Message(role="assistant", content="", tool_calls=(ToolCall(id="ex", name="open_door", arguments='{"door":"1"}'),)),
    Message(role="tool", content="Right.", tool_call_id="ex"),
    Message(role="user", content="The first door is 5. ä\u2028"),
)
LAST_CALL = ToolCall(id="c2", name="leave", arguments='{"to": 1e999}')


def _turn(number: int, observation: Observation, reply: Act | Stop, **fields: object) -> Turn:
    counted = USAGE if isinstance(reply, Act) else {}
    given = {"model": "served-name", "stop": "stop", "model_seconds": 2.0, "world_seconds": 1.0, **counted, **fields}
    text = observation.model_dump_json()
    return Turn.model_validate(
        {"turn": number, "digest": observation.digest(), "observation": text, "reply": reply, **given}
    )


def walk(agent: str) -> list[Turn]:
    """Two turns with calls: one with malformed arguments, a result for it, and a last one, with a number that
    JSON can't hold, that is never answered."""
    echo: dict[str, object] = {"reasoning_content": ECHO}
    broken = ToolCall(id="c1", name="open_door", arguments='{"door": ')
    first = Action.model_validate(
        {
            "content": "I try.",
            "tool_calls": (broken,),
            "echo": echo,
            "reasoning": THOUGHT[agent],
            "token_ids": (7, 8),
            "logprobs": (-0.5, -0.25),
        }
    )
    return [
        _turn(1, Observation(messages=EXAMPLE, tools=(DOOR,)), Act(action=first)),
        _turn(
            2,
            Observation(messages=(Message(role="tool", content="Unreadable.", tool_call_id="c1"),), tools=(DOOR,)),
            Act(action=Action(content="", tool_calls=(LAST_CALL,))),
        ),
    ]


def talk(agent: str) -> list[Turn]:
    """Three conversations: `main`, whose history is worded anew, `..`, and `main` with all of it forgotten."""
    user = Message(role="user", content="Guess? [a, b]")
    said = Action(content="a", reasoning=THOUGHT[agent])
    retold = (Message(role="user", content="Guess?"), Message(role="assistant", content="a"))
    again = Message(role="user", content="No. Guess? [b]")
    return [
        _turn(1, Observation(messages=(user,)), Act(action=said)),
        _turn(2, Observation(messages=(*retold, again), fresh=True), Act(action=Action(content="b")), stop="length"),
        _turn(3, Observation(messages=(Message(role="user", content="Act!"),), conversation=".."), Act(action=said)),
        _turn(4, Observation(messages=(user,), fresh=True), Act(action=Action(content="c"))),
        _turn(5, Observation(messages=(again,)), Stop(reason=FinishReason.TURN_LIMIT)),
    ]


WON = Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"steps": 2.0}, detail={"answer": ["x", 1]})
FINISHES: dict[str, Finish | None] = {
    "won": WON,
    "../lost": Finish(reason=FinishReason.COMPLETED, score=0.25),
    "long": Finish(reason=FinishReason.TURN_LIMIT, score=0.5),
    "full": Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0),
    "broken": Finish.fault(FinishReason.TASK_ERROR, "the database is gone"),
    "silent": Finish.fault(FinishReason.AGENT_ERROR, f"no answer of https://{SECRET}.example/v1"),
    "owed": None,
}
"""sample -> its end; a trial that is owed has none. The one named `silent` has no turn."""


def write_run(output: Path, samples: Iterable[str] = FINISHES, epochs: int = 2) -> Store:
    """The store of the run in a new folder of `output`; samples that are not in FINISHES are won."""
    (output / RUN).mkdir(parents=True)
    store = Store(connect(sqlite_url(output / RUN)), RUN)
    plan = Plan.model_validate({**PLAN, "epochs": epochs})
    keys = [(a, t, s, e) for t in TASKS for s in samples for e in range(epochs) for a in THOUGHT]
    trials = [Trial(id=n, agent=a, task=t, sample=s, epoch=e) for n, (a, t, s, e) in enumerate(keys)]
    protocols = {"walk": "tools", "talk": "text"}
    tasks = {
        name: TaskRecord.model_validate(
            {"environment": "ltp", "digest": f"digest-{name}", "samples": 7, "protocol": protocols[name]}
        )
        for name in TASKS
    }
    recorded = plan.model_dump(mode="json")
    manifest = Manifest(version="1.2", plan_path="p", plan=recorded, identity=plan.identity(), tasks=tasks)
    store.create(manifest, trials)
    asyncio.run(_write(store, trials))
    return store


async def _write(store: Store, trials: Iterable[Trial]) -> None:
    journal = Journal(store, store.take_over())
    await asyncio.gather(*(_write_trial(journal, trial, FINISHES.get(trial.sample, WON)) for trial in trials))
    await journal.close()


async def _write_trial(journal: Journal, trial: Trial, finish: Finish | None) -> None:
    turns = (walk if trial.task == "walk" else talk)(trial.agent) if trial.sample != "silent" else []
    await journal.begin(trial, 1, 0, f"{trial.id:032}")
    for turn in turns:
        await journal.turn(trial, 0, turn)
    if finish is None:
        return
    answered = sum(isinstance(turn.reply, Act) for turn in turns)
    counts = {name: answered * count for name, count in USAGE.items()}
    cost = Cost(turns=len(turns), seconds=20.0, usage=Usage(**counts))
    await journal.finish(trial, 1, "w", finish, cost)
