"""The servers of a model that an environment uses, most often one: who is asked, and who is asked in its place."""

import asyncio
import os
import random
import stat
from pathlib import Path
from weakref import WeakKeyDictionary

from proctor import event_loop
from proctor.environment import AgentRefused, AgentUnavailable, RequestRejected, ToolsRefused
from proctor.http.client import HttpClient
from proctor.llm.config import ChatConfig, ReplicaEntry, plain_url
from proctor.llm.model import ChatModel, Completion
from proctor.llm.outage import FIRST_WAIT_S, LONGEST_WAIT_S, paid_by
from proctor.llm.wire import Fields, Messages
from proctor.retry import RetryPolicy
from proctor.session.kept_replies import SessionReplies, session_replies
from proctor.types import Usage

MAX_FILE = 1 << 20
SHARE = 16
"""The share of the questions of a replica that says none: as the `concurrency` of endpoints is by default."""


class _Server:
    """One of the servers."""

    def __init__(self, url: str, share: int, model: ChatModel) -> None:
        self.url, self.share, self.model = url, share, model
        self.calls = 0
        """Under way."""
        self.wait_s = FIRST_WAIT_S
        self.down_until = float("-inf")

    async def asked(self, messages: Messages, sampling: Fields) -> Completion:
        """Its answer. Once it fails, others are asked for 1, 2, 4, ... 30 s."""
        self.calls += 1
        try:
            completion = await self.model.complete(messages, sampling=sampling)
        except AgentUnavailable:
            self.down_until = event_loop.clock() + self.wait_s
            self.wait_s = min(2 * self.wait_s, LONGEST_WAIT_S)
            raise
        finally:
            self.calls -= 1
        self.wait_s, self.down_until = FIRST_WAIT_S, float("-inf")
        return completion


class HelperServers:
    """A model at its servers. A session stays at one while that one answers, since its words are in that one's cache.

    Raises ValueError where the configured key or base URL can't be used.
    """

    def __init__(self, config: ChatConfig, client: HttpClient) -> None:
        self._config, self._client = config, client
        self._policy = RetryPolicy(max_tries=config.max_tries, max_retry_s=config.max_retry_s)
        self._all = dict[str, _Server]()
        self._bound = WeakKeyDictionary[SessionReplies, _Server]()
        self._file = config.replicas_file and ReplicasFile(config.replicas_file)
        self._problems: list[str] = []
        """What was wrong in it."""
        self._use(config.servers())

    def _use(self, entries: tuple[ReplicaEntry, ...]) -> None:
        """Ask these servers from now on; those that were asked before stay as they are."""
        self._all = {each.base_url: self._all.get(each.base_url) or self._server(each) for each in entries}

    def _server(self, entry: ReplicaEntry) -> _Server:
        config = self._config
        if config.has_replicas:  # one that fails is not asked again before the others
            config = config.at(entry.base_url).model_copy(update={"max_tries": 1})
        return _Server(entry.base_url, entry.concurrency or SHARE, ChatModel(config, self._client))

    async def complete(self, messages: Messages, sampling: Fields) -> Completion:
        """The answer of one that gives one; once all have failed, all are tried again. Raises as `ChatModel` does."""
        tries, begun, lost = 0, event_loop.clock(), Usage()
        while True:
            failed, tries = dict[_Server, AgentUnavailable](), tries + 1
            while (server := self._next(failed)) is not None:
                try:
                    completion = await server.asked(messages, sampling)
                    return completion._replace(usage=completion.usage.plus(lost))
                except AgentUnavailable as failure:
                    if isinstance(failure, RequestRejected | ToolsRefused):
                        raise
                    failed[server], lost = failure, lost.plus(paid_by(failure) or Usage())
            first = next(iter(failed.values()), None) or AgentUnavailable("; ".join(self._problems))
            wait_s = self._policy.wait_s(tries, random.random(), elapsed_s=event_loop.clock() - begun)
            if wait_s is None or isinstance(first, AgentRefused) or not self._config.has_replicas:
                first.paid = lost if any(lost) else None
                raise first
            await asyncio.sleep(wait_s)

    def _next(self, failed: dict[_Server, AgentUnavailable]) -> _Server | None:
        """Who is asked next: the session's own server, else the one with the least to do; the last ones are down."""
        if self._file and (news := self._file.news()) is not None:
            urls, self._problems = news
            self._use(tuple(ReplicaEntry(base_url=url) for url in urls))
        left = [server for server in self._all.values() if server not in failed]
        here = [server for server in left if server.down_until <= event_loop.clock()] or left
        session = session_replies.get()
        bound = None if session is None else self._bound.get(session)
        if bound in here:
            return bound
        best = min(here, key=lambda server: server.calls / server.share, default=None)
        if session is not None and best is not None:
            self._bound[session] = best
        return best


class ReplicasFile:
    """A `replicas_file`, which is read again when it has changed."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._state: object = self
        """What changes when the file does; None where it is missing."""

    def news(self) -> tuple[list[str], list[str]] | None:
        """Its URLs and what is wrong, see `replicas_of_file`; None where it is as it was the last time."""
        try:
            found = os.stat(self._file)
            state = found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode, found.st_uid
        except OSError:
            state = None
        before, self._state = self._state, state
        return None if state == before else replicas_of_file(self._file)


def replicas_of_file(named: str) -> tuple[list[str], list[str]]:
    """The URLs in a `replicas_file`, each once, and what is wrong; no URL where it is missing or not ours alone.

    Whoever can write the file gets the key.
    """
    file = Path(named)
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                return [], [f"replicas_file: {file}: is no regular file"]
            if found.st_uid != os.geteuid():
                return [], [
                    f"replicas_file: {file}: belongs to another user, who would get the key; use a file of yours"
                ]
            if found.st_mode & 0o022:
                return [], [f"replicas_file: {file}: others can write to it, and would get the key; chmod go-w {file}"]
            text = opened.read(MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        return [], [f"replicas_file: {file}: {error.strerror}"]
    urls: dict[str, None] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        given = line.partition("#")[0].strip()
        try:
            if given:
                urls[plain_url(given)] = None
        except ValueError as error:
            problems.append(f"replicas_file: {file}: line {number}: {error}")
    if not urls and not problems:
        problems.append(f"replicas_file: {file}: is empty")
    return list(urls), problems
