"""Small sessions of each world, as rows of `WORLD.jsonl`: the configuration, the replies, and what comes of them.

A row of a session has `sample` and `replies`, the last one repeated: a text, `[function, arguments]`, a list of such
calls, or `{"stop": reason}`; by conversation where a world has several. It says of the session what it must be:

- `told`: number of a turn, from 0 -> its messages as `role: text` or `role id: text`, in which `…` stands for any text;
  after the name of a conversation where the world has several
- `never`: texts that no message has; `tools`: the functions offered in every turn, all in one conversation
- `turns`, `reason`, `score`, `metrics`, `detail`: as many as the row gives

A row without replies is about the configuration: `refused` (part of the error when it is made or its samples are
read), `not_comparable`, `notes` (parts of notes), `no_notes`, `digest`, `max_turns`, and `differ` and `alike`: changes
of the fields of which each makes another digest, or none. `profiles` has what else is true of the row in each profile.
In fields, `{samples}` is the folder of the shipped samples, and `{folder}` one with a copy of it, where the row names
one as `copied`; with the row's `files`; with `edits` of them: what is replaced by what, or new values by their dotted
places; without what is `missing`. `sessions` is the hash of all that is told and scored where each policy plays each
sample, or those `of` the row, and each of its `scripts` the first: so a run of an older version goes on. It changes
with the shipped samples, and where the revision is raised.
"""

import inspect
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor import registry
from proctor.environment import AgentStopped, Environment
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from tests.tool_calls import CallingAgent, Reply, calls, in_turn, sessions_in_text

Row = Mapping[str, Any]


def rows() -> Iterator[Any]:
    for file in sorted(Path(__file__).parent.glob("*.jsonl")):
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            for profile, more in row.get("profiles", {"": {}}).items():
                fields = {**row.get("fields", {}), **({"profile": profile} if profile else {})}
                yield pytest.param(
                    file.stem, {**row, **more, "fields": fields}, id=f"{file.stem}: {row['case']} {profile}"
                )


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(("world", "row"), list(rows()))
async def test_row(world: str, row: Row, cache: Path, tmp_path: Path) -> None:
    kind = registry.load(world)
    samples = Path(inspect.getfile(kind)).parent / "samples"
    lay_out(tmp_path, samples, row)

    def build(fields: Mapping[str, object]) -> Environment:
        given = json.loads(json.dumps(fields).replace("{folder}", str(tmp_path)).replace("{samples}", str(samples)))
        return kind.model_validate({**({"cache": cache} if "cache" in kind.model_fields else {}), **given})

    if "refused" in row:
        with pytest.raises(ValueError, match=re.escape(row["refused"].replace("{folder}", str(tmp_path)))):
            build(row["fields"]).samples()
    elif "replies" in row:
        await session(build(row["fields"]), row)
    else:
        configuration(build(row["fields"]), row)
        if "sessions" in row:
            played = build(row["fields"])
            assert row["sessions"] == await sessions_in_text(
                played, row.get("of", played.samples()), *row.get("scripts", ())
            )
        changed = [{}, *row.get("differ", ())] if {"differ", "alike"} & row.keys() else []
        digests = [build({**row["fields"], **fields}).digest() for fields in changed]
        assert len(set(digests)) == len(digests)
        assert {build({**row["fields"], **fields}).digest() for fields in row.get("alike", ())} <= {*digests[:1]}


def lay_out(folder: Path, samples: Path, row: Row) -> None:
    if "copied" in row:
        shutil.copytree(samples, folder / row["copied"])
    for name, content in row.get("files", {}).items():
        written = content if isinstance(content, str) else json.dumps(content)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(written.encode(errors="surrogateescape"))
    for name in row.get("missing", ()):
        (folder / name).unlink()
    for name, edit in row.get("edits", {}).items():
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(*edit) if isinstance(edit, list) else edited(text, edit))


def edited(text: str, values: Mapping[str, object]) -> str:
    whole = json.loads(text)
    for place, value in values.items():
        *way, last = (int(step) if step.isdigit() else step for step in place.split("."))
        inner = whole
        for step in way:
            inner = inner[step]
        inner[last] = value
    return json.dumps(whole)


def configuration(environment: Environment, row: Row) -> None:
    notes = environment.summarize([]).notes if {"notes", "no_notes"} & row.keys() else ()
    assert all(any(part in note for note in notes) for part in row.get("notes", ()))
    assert not any(part in note for note in notes for part in row.get("no_notes", ()))
    assert row.get("not_comparable", "") in (environment.not_comparable_because() or "")
    assert "digest" not in row or environment.digest() == row["digest"]
    assert row.get("max_turns") in (None, environment.max_turns)


async def session(environment: Environment, row: Row) -> None:
    given = row["replies"] if isinstance(row["replies"], dict) else {"main": row["replies"]}
    policies = {name: in_turn(*map(reply, replies)) for name, replies in given.items()}
    agent = CallingAgent(lambda name, history: policies[name if name in policies else "main"](name, history))
    async with environment.lifespan():
        finish = await play_to_finish(environment, row["sample"], agent)
    for turn, wanted in row.get("told", {}).items():
        *conversation, number = turn.split()
        seen = [each for each in agent.seen if not conversation or each.conversation in conversation]
        told(seen[int(number)], wanted)
    texts = [message.content for observation in agent.seen for message in observation.messages]
    assert not [text for text in texts for part in row.get("never", ()) if part in text]
    if "tools" in row:
        offers = [([tool.name for tool in observation.tools], observation.fresh) for observation in agent.seen]
        assert offers == [(row["tools"], False)] * len(agent.seen)
    assert row.get("turns") in (None, len(agent.seen))
    ended(finish, row)


def told(observation: Observation, wanted: Sequence[str]) -> None:
    """Its messages are these, or begin and end with them where `…` stands among them."""
    messages: list[Message] = list(observation.messages)
    if "…" in wanted:
        messages = [messages[at] for at, each in zip((0, -1), (wanted[0], wanted[-1]), strict=True) if each != "…"]
        wanted = [each for each in wanted if each != "…"]
    assert len(messages) == len(wanted), messages
    for message, text in zip(messages, wanted, strict=True):
        pattern = re.escape(text).replace("…", "(?s:.*)")
        forms = (f"{message.role}: {message.content}", f"{message.role} {message.tool_call_id}: {message.content}")
        assert any(re.fullmatch(pattern, form) for form in forms), (forms, text)


def ended(finish: Finish, row: Row) -> None:
    assert row.get("reason") in (None, finish.reason.value), finish
    assert "score" not in row or finish.score == pytest.approx(row["score"])
    for kind, there in (("metrics", finish.metrics), ("detail", finish.detail)):
        wanted = row.get(kind, {})
        assert {name: there.get(name) for name in wanted} == wanted


def reply(given: Any) -> Reply:
    match given:
        case str():
            return Action(content=given)
        case {"stop": reason}:
            return AgentStopped(FinishReason(reason))
        case [str() as name, arguments]:
            return calls((name, arguments))
        case _:
            return calls(*map(tuple, given))
