# %% [markdown]
# # An agent of your own, from the first session to a test
#
# Open this file in an editor that knows `# %%` cells, or run it: `python examples/notebook.py`.
# It needs no key, no Docker and no other installation.

# %%
import os
from collections.abc import Sequence

from proctor import Message, Tool, assert_scores, evaluate, open_run, play

# %% [markdown]
# An agent is a function: the conversation so far and the tools in, an answer out.


# %%
def explorer(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    places = ["countertop 1", "fridge 1", "cabinet 1", "drawer 1"]
    turn = sum(message.role == "assistant" for message in messages)
    return f"THOUGHT: I look everywhere.\nACTION: go to {places[turn % len(places)]}"


# %% [markdown]
# One session in this process, and its end.

# %%
finish = play("alfworld", explorer)
print(finish.reason, finish.score)

# %% [markdown]
# A run: every agent plays the same samples. It is stored in a folder, so nothing is lost if the kernel dies.

# %%
run = evaluate(
    agents=[explorer, "reference"],
    tasks=["alfworld"],
    limit=2,
    overrides={"limits.trial.turns": 8},
    folder="runs",
)
for row in run.scores():
    print(f"{row['agent']:10} {row['metric']} {row['value']:.2f} ({row['scored']} of {row['planned']} scored)")

# %% [markdown]
# What happened in a trial, turn by turn.

# %%
for turn in run.turns():
    if turn.agent == "explorer" and turn.sample == "own-00000" and turn.action is not None:
        shown = turn.observation.messages[-1].content.splitlines()[0]
        print(f"{shown[:60]} -> {turn.action.content.splitlines()[-1]}")

# %% [markdown]
# With pandas, the trials are a table: `run.frame().groupby(["agent", "task"]).score.mean()`.

# %%
try:
    print(run.frame().groupby(["agent", "task"]).score.mean())
except ImportError as error:
    print(error)


# %% [markdown]
# A function that raises is a fault, not a score.


# %%
def forgetful(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    if "CUPBOARD" not in os.environ:
        raise KeyError("the cupboard")
    return explorer(messages, tools)


faulty = evaluate(
    agents={"mine": forgetful}, tasks=["alfworld"], limit=1, overrides={"limits.trial.turns": 8}, folder="runs"
)
for trial in faulty.trials():
    print(trial.sample, trial.score, trial.finish and trial.finish.detail["cause"])

# %% [markdown]
# Give it what it lacked and resume: only trials without a score are played. In a kernel that was started again,
# `open_run("latest")` finds the run. Another function, or an edited one, is refused: a run has the answers of one.

# %%
os.environ["CUPBOARD"] = "open"
resumed = open_run("latest", folder="runs").resume({"mine": forgetful})
print(resumed.summary("alfworld").metrics)
assert_scores(resumed, "alfworld", agent="mine", at_least=0.0)
