"""Models of an environment: asked until a reply can be read; only such a reply is stored."""

import asyncio
import contextlib
import json
import math
import resource
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.http.client import DeadlineExceeded
from proctor.llm.cached_model import Answer, CachedModel, NoReadableReply, Question, Replies, key_of
from proctor.llm.config import ChatConfig
from proctor.session.kept_replies import KeptReply, ModelReply, SessionReplies, session_replies
from proctor.types import Finish, Message
from tests.support import via

KEY = "0" * 40
ASKED = (Message(role="system", content="Judge."), Message(role="user", content="How many?"))


class Endpoint:
    """Returns its replies in order, the last one repeatedly; records the requests."""

    def __init__(self, *replies: str, stop: str = "stop") -> None:
        self._replies = list(replies)
        self._stop = stop
        self.asked: list[dict[str, Any]] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(json.loads(request.content))
        text = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        choice = {"message": {"content": text}, "finish_reason": self._stop}
        usage = {"prompt_tokens": 100, "completion_tokens": 7}
        return httpx.Response(200, json={"choices": [choice], "usage": usage, "model": "exact"})

    async def answers(
        self, folder: Path, *questions: Question[int], sampling: dict[str, object] | None = None, **fields: object
    ) -> Sequence[Answer[int]]:
        """The answers of a model in another process to concurrent questions."""
        replies = Replies(folder)
        replies.open()
        given = {"base_url": "http://host/v1", "model": "m", "sampling": sampling or {}, **fields}
        config = ChatConfig.model_validate(given)
        async with httpx.AsyncClient(transport=httpx.MockTransport(self.handle)) as client:
            model = CachedModel("judge", config, via(client), replies, {"temperature": 0})
            return await asyncio.gather(*map(model.ask, questions))


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow inside this context."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def paid(session: SessionReplies) -> tuple[int, int, int]:
    """(tries, prompt tokens, completion tokens) that the session counts."""
    counted = [kept.reply for kept in session.since(0) if kept.bought]
    tries, prompt = sum(reply.tries for reply in counted), sum(reply.prompt_tokens for reply in counted)
    return tries, prompt, sum(reply.completion_tokens for reply in counted)


def number(tries: int = 3, salt: str = "") -> Question[int]:
    return Question(ASKED, int, lambda problem: f"Again: {problem}", tries, salt)


async def test_an_answer_is_bought_once_and_told_with_all_that_it_cost(tmp_path: Path) -> None:
    endpoint = Endpoint("some", "7")
    (first,) = await endpoint.answers(tmp_path, number())
    assert first == Answer(7, ModelReply(text="7", model="exact", prompt_tokens=200, completion_tokens=14, tries=2))
    assert await endpoint.answers(tmp_path, number(), number()) == [first, first]
    assert len(endpoint.asked) == 2
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1, "only what could be read is kept"


async def test_who_can_never_be_read_is_a_failure_and_asked_anew_the_next_time(tmp_path: Path) -> None:
    endpoint = Endpoint("some")
    with pytest.raises(NoReadableReply, match="no answer of the judge could be read in 3 tries: invalid literal") as no:
        await endpoint.answers(tmp_path, number())
    assert no.value.reply == ModelReply(text="some", model="exact", prompt_tokens=300, completion_tokens=21, tries=3)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    (answer,) = await Endpoint("8").answers(tmp_path, number())
    assert (answer.meaning, answer.reply.tries) == (8, 1)


async def test_tries_vary_by_a_reminder_and_then_by_a_temperature(tmp_path: Path) -> None:
    endpoint = Endpoint("some" * 2_000, "", "many", "some", "5")
    await endpoint.answers(tmp_path, number(tries=5))
    asked = [[each["content"] for each in body["messages"]] for body in endpoint.asked]
    assert asked[0] == ["Judge.", "How many?"]
    assert asked[1][:3] == ["Judge.", "How many?", "some" * 1_000]
    assert asked[1][3].startswith("Again: invalid literal")
    assert asked[2][2] == "(nothing)", "an empty message is refused by some endpoints"
    assert asked[3][:3] == ["Judge.", "How many?", "many"]
    assert [body["temperature"] for body in endpoint.asked] == [0, 0, 0.3, 0.4, 0.5]


@pytest.mark.parametrize(
    ("sampling", "temperatures"),
    [({"temperature": 0.35}, [0.35, 0.35, 0.35, 0.4]), ({"temperature": None}, [None] * 4), ({}, [0, 0, 0.3, 0.4])],
)
async def test_a_temperature_of_its_own_is_only_raised(
    sampling: dict[str, object], temperatures: list[float | None], tmp_path: Path
) -> None:
    endpoint = Endpoint("a", "b", "c", "1")
    await endpoint.answers(tmp_path, number(tries=4), sampling=sampling)
    assert [body["temperature"] for body in endpoint.asked] == temperatures


async def test_what_a_content_filter_stopped_is_no_reply(tmp_path: Path) -> None:
    with pytest.raises(NoReadableReply, match="a content filter stopped it"):
        await Endpoint("9", stop="content_filter").answers(tmp_path, number())


async def test_equal_questions_with_a_salt_get_replies_of_their_own(tmp_path: Path) -> None:
    endpoint = Endpoint("1", "2", "3")
    answers = [(await endpoint.answers(tmp_path, number(salt=salt)))[0].meaning for salt in ("", "a", "b", "a", "")]
    assert answers == [1, 2, 3, 2, 1]


async def test_a_reply_is_known_by_url_dialect_model_sampling_and_messages(tmp_path: Path) -> None:
    rehearsal = Endpoint("0")
    await rehearsal.answers(tmp_path, number())
    others: list[dict[str, Any]] = [
        {"base_url": "http://real/v1"},
        {"base_url": "http://host/v2"},
        {"query": {"api-version": "2"}},
        {"model": "n"},
        {"sampling": {"top_p": 0.5}},
    ]
    for place, other in enumerate(others, 1):
        (answer,) = await Endpoint(str(place)).answers(tmp_path, number(), **other)
        assert answer.meaning == place
    alike: dict[str, Any] = {"api_key_env": "OTHER", "headers": {"x-team": "a"}, "deadline_s": 5, "stream": True}
    assert [answer.meaning for answer in await rehearsal.answers(tmp_path, number(), **alike)] == [0]
    assert len(rehearsal.asked) == 1


async def test_replies_of_earlier_versions_count_in_their_own_runs_and_not_from_the_cache(tmp_path: Path) -> None:
    replies, old = Replies(tmp_path), ModelReply(text="1", model="m")
    replies.open()
    earlier = key_of("readable", "m", {"temperature": 0}, "", ASKED)
    replies.keep(earlier, old, old)
    (anew,) = await Endpoint("2").answers(tmp_path, number())
    assert anew.meaning == 2
    session_replies.set(SessionReplies([KeptReply(key=earlier, reply=old, bought=True)], lambda: None))
    (kept,) = await Endpoint("3").answers(tmp_path / "other", number())
    assert kept.meaning == 1


async def test_a_kept_reply_that_is_read_otherwise_by_now_is_bought_anew(tmp_path: Path) -> None:
    await Endpoint("10").answers(tmp_path, number())
    digit = number()._replace(read=lambda text: int(text) if len(text) == 1 else int("no digit"))
    session = SessionReplies((), lambda: None)
    session_replies.set(session)
    (answer,) = await Endpoint("4").answers(tmp_path, digit)
    assert answer.meaning == 4
    other = Endpoint("5")
    session_replies.set(SessionReplies(session.since(0), lambda: None))  # on another machine
    assert await other.answers(tmp_path / "other", digit) == [answer]
    session_replies.set(SessionReplies((), lambda: None))  # another session on this machine
    assert await other.answers(tmp_path, digit) == [answer]
    assert other.asked == [], "it was bought once"
    assert [(kept.reply.text, kept.bought) for kept in session.since(0)] == [("10", False), ("4", True)]


@pytest.mark.parametrize(
    ("given", "answered", "waited_s"), [(None, 0, None), (None, 1, 3600), (7.0, 0, 7), (7.0, 1, 7)]
)
async def test_an_endpoint_that_fails_names_role_and_model_and_is_waited_for_as_one_of_an_agent(
    tmp_path: Path, given: float | None, answered: int, waited_s: float | None
) -> None:
    config = ChatConfig(base_url="http://host/v1", model="m", max_tries=1, patience_s=given)
    good = {"choices": [{"message": {"content": "1"}}]}
    replies = iter([*[httpx.Response(200, json=good)] * answered, httpx.Response(503)])
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: next(replies))) as client:
        model = CachedModel("judge", config, via(client), Replies(tmp_path), {})
        for salt in range(answered):
            await model.ask(number(salt=str(salt)))
        with pytest.raises(ServiceAway, match="the judge m failed: ") as failed:
            await model.ask(number())
    assert failed.value.patience_s == waited_s
    assert Finish.away("", failed.value.patience_s).detail["patience_s"] == waited_s


async def test_what_was_paid_for_is_not_lost_where_the_folder_cannot_keep_it(tmp_path: Path) -> None:
    session = SessionReplies((), lambda: None)
    session_replies.set(session)
    endpoint = Endpoint("7")
    with full_disk(), pytest.raises(EnvironmentFault, match="set `cache` to another folder"):
        await endpoint.answers(tmp_path, number())
    session_replies.set(SessionReplies(session.since(0), lambda: None))
    assert [answer.meaning for answer in await endpoint.answers(tmp_path, number())] == [7]
    assert len(endpoint.asked) == 1


async def test_a_session_keeps_what_it_used_and_what_it_paid_for_in_vain(tmp_path: Path) -> None:
    news: list[None] = []
    first = SessionReplies((), lambda: news.append(None))
    endpoint = Endpoint("some", "7", "no number")
    session_replies.set(first)
    (seven,) = await endpoint.answers(tmp_path / "one", number())
    with pytest.raises(NoReadableReply):
        await endpoint.answers(tmp_path / "one", number(salt="other"))
    kept = first.since(0)
    assert [(one.reply.text, one.reply.tries, one.bought, one.usable) for one in kept] == [
        ("some", 1, True, False),
        ("7", 1, True, False),
        ("7", 2, False, True),
        *[("no number", 1, True, False)] * 3,
    ]
    assert paid(first) == (len(endpoint.asked), 100 * len(endpoint.asked), 7 * len(endpoint.asked))
    assert (len(news), first.since(1)) == (6, kept[1:])
    calls = len(endpoint.asked)
    session_replies.set(SessionReplies(kept, lambda: None))  # on another machine, whose cache is empty
    assert await endpoint.answers(tmp_path / "two", number()) == [seven]
    assert len(endpoint.asked) == calls
    with pytest.raises(NoReadableReply):
        await endpoint.answers(tmp_path / "two", number(salt="other"))
    assert len(endpoint.asked) == calls + 3, "what could not be read is asked for again"
    third = SessionReplies((), lambda: None)
    session_replies.set(third)
    await endpoint.answers(tmp_path / "one", number())
    (cached,) = third.since(0)
    assert cached == KeptReply(key=kept[0].key, reply=seven.reply, bought=False)


async def test_a_try_is_told_as_soon_as_it_is_paid_for(tmp_path: Path) -> None:
    asked_again, session = asyncio.Event(), SessionReplies((), lambda: None)
    first = Endpoint("some")

    async def handle(request: httpx.Request) -> httpx.Response:
        if first.asked:
            asked_again.set()
            await asyncio.Event().wait()
        return first.handle(request)

    session_replies.set(session)
    config = ChatConfig(base_url="http://host/v1", model="m")
    async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as client:
        asking = asyncio.create_task(CachedModel("judge", config, via(client), Replies(tmp_path), {}).ask(number()))
        await asked_again.wait()
        assert paid(session) == (1, 100, 7)
        asking.cancel()
        await asyncio.wait([asking])
    assert paid(session) == (1, 100, 7)


async def test_a_session_that_bought_what_another_kept_first_has_paid_for_its_own(tmp_path: Path) -> None:
    session, replies = SessionReplies((), lambda: None), Replies(tmp_path)
    first, second = (ModelReply(text=text, model="m", prompt_tokens=tokens) for text, tokens in (("a", 1), ("b", 20)))
    replies.keep(KEY, first, first)
    session_replies.set(session)
    assert replies.keep(KEY, second, second) == first == session.find(KEY)
    assert paid(session) == (1, 20, 0)


class Several:
    """Servers by host, each of which answers with its number, or fails so."""

    def __init__(self, *hosts: str) -> None:
        self.failing: dict[str, httpx.Response | Exception] = {}
        self.asked: list[str] = []
        self._hosts = hosts

    async def handle(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        self.asked.append(host)
        await asyncio.sleep(0.01)
        failed = self.failing.get(host)
        if isinstance(failed, Exception):
            raise failed
        choice = {"message": {"content": str(self._hosts.index(host))}, "finish_reason": "stop"}
        return failed or httpx.Response(200, json={"choices": [choice]})

    @contextlib.asynccontextmanager
    async def model(self, folder: Path, **more: object) -> AsyncIterator[CachedModel]:
        given = {"base_url": [f"http://{host}/v1" for host in self._hosts], "model": "m", **more}
        config, replies = ChatConfig.model_validate({k: v for k, v in given.items() if v is not None}), Replies(folder)
        replies.open()
        async with httpx.AsyncClient(transport=httpx.MockTransport(self.handle)) as client:
            yield CachedModel("judge", config, via(client), replies, {})


@contextlib.contextmanager
def session() -> Iterator[SessionReplies]:
    """A session that is being played."""
    replies = SessionReplies((), lambda: None)
    token = session_replies.set(replies)
    try:
        yield replies
    finally:
        session_replies.reset(token)


DOWN = httpx.ConnectError("refused")


@pytest.mark.parametrize("failed", [DOWN, httpx.Response(500), httpx.Response(429), httpx.Response(401)])
async def test_another_server_answers_where_one_fails(failed: httpx.Response | Exception, tmp_path: Path) -> None:
    several = Several("a", "b", "c")
    async with several.model(tmp_path, max_tries=2) as model:
        with session():
            before = [(await model.ask(number(salt=str(salt)))).meaning for salt in range(3)]
            assert before == [0, 0, 0], "a session stays at its server"
            several.failing["a"] = failed
            after = [(await model.ask(number(salt=str(salt)))).meaning for salt in range(3, 6)]
        assert len({*after}) == 1
        assert after[0] != 0
        assert several.asked.count("a") == 4, "who is down is left alone"
        several.failing = dict.fromkeys("abc", failed)
        with pytest.raises(ServiceAway, match="the judge m failed"):
            await model.ask(number(salt="6"))
        assert len(several.asked) == 7 + 2 * 3


async def test_questions_at_once_are_spread_by_the_share_of_each_server(tmp_path: Path) -> None:
    several = Several("a", "b")
    shares = [{"base_url": "http://a/v1", "concurrency": 3}, {"base_url": "http://b/v1", "concurrency": 1}]
    async with several.model(tmp_path, base_url=shares) as model:
        await asyncio.gather(*(model.ask(number(salt=str(salt))) for salt in range(40)))
    assert several.asked.count("a") == 30


async def test_servers_of_a_file_are_asked_as_it_names_them(tmp_path: Path) -> None:
    several, file = Several("a", "b"), tmp_path / "servers"
    async with several.model(
        tmp_path / "cache", base_url=None, replicas_file=str(file), replicas_of="many", max_tries=1
    ) as model:
        with pytest.raises(ServiceAway, match=r"replicas_file: .*servers: No such file"):
            await model.ask(number())
        for host, meaning in (("b", 1), ("a", 0)):
            file.write_text(f"http://{host}/v1\n")
            assert (await model.ask(number(salt=host))).meaning == meaning
    async with several.model(tmp_path / "cache", base_url=None, replicas_file="moved", replicas_of="many") as model:
        assert (await model.ask(number(salt="b"))).meaning == 1, "known by the endpoint's name"


async def test_an_answer_costs_what_another_server_was_asked_for_before(tmp_path: Path) -> None:
    several = Several("a", "b")
    several.failing["a"] = DeadlineExceeded("no answer in 1 s")
    async with several.model(tmp_path) as model:
        reply = (await model.ask(number())).reply
    assert reply.prompt_tokens == 2 * math.ceil(sum(len(message.content) for message in ASKED) / 3.5)


async def test_a_request_of_a_judge_that_ends_at_its_deadline_is_paid_for(tmp_path: Path) -> None:
    several = Several("a")
    several.failing["a"] = DeadlineExceeded("no answer in 1 s")
    async with several.model(tmp_path, base_url="http://a/v1", max_tries=2) as model:
        with session() as replies, pytest.raises(ServiceAway):
            await model.ask(number())
    (spent,) = [kept.reply for kept in replies.since(0) if kept.bought]
    asked = sum(len(message.content) for message in ASKED)
    assert spent.estimated_tokens == spent.prompt_tokens == math.ceil(2 * asked / 3.5)
