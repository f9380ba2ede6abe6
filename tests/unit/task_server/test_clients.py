"""Which client has a session: any interleaving of requests and silences of several clients, against a model."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from task_server.wire.clients import SILENT_S, Clients, Succession
from task_server.wire.errors import SessionHeld, SessionTaken
from task_server.wire.messages import NOBODY, Sender

RUN, OTHER_RUN = "1" * 32, "2" * 32
NAMES = ["a" * 32, "b" * 32, "c" * 32]


class ClientsOfOneRun(RuleBasedStateMachine):
    """Three processes that ask for one session, the first of which started it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.clients, self.succession = Clients(), Succession((NAMES[0],))
        self.heard = {NAMES[0]: self.now}
        self.had = [NAMES[0]]
        self.clients.hear(Sender(RUN, client=NAMES[0]), self.now)

    @rule(seconds=st.sampled_from([0.0, 0.125, 4.0, SILENT_S - 0.125, SILENT_S, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def silent_ones_are_forgotten(self) -> None:
        self.clients.forget_silent(self.now)

    @rule(client=st.sampled_from(NAMES))
    def a_client_yields(self, client: str) -> None:
        self.clients.hear(Sender(RUN, client=client, yields=True), self.now)
        self.heard.pop(client, None)

    @rule(client=st.sampled_from(NAMES), dead=st.sampled_from(NAMES))
    def a_client_takes_the_place_of_one_that_has_ended(self, client: str, dead: str) -> None:
        if client != dead:
            self.clients.hear(Sender(RUN, client=client, succeeds=dead), self.now)
            self.heard.pop(dead, None)
            self.heard[client] = self.now

    @rule(client=st.sampled_from(NAMES))
    def a_client_asks(self, client: str) -> None:
        before, holder = self.succession, self.had[-1]
        silent = self.now - self.heard.get(holder, 0.0) >= SILENT_S
        self.clients.hear(Sender(RUN, client=client), self.now)
        self.heard[client] = self.now
        if client == holder:
            assert before.admit(client, self.clients, self.now) == before
        elif client in self.had:
            with pytest.raises(SessionTaken):
                before.admit(client, self.clients, self.now)
        elif not silent:
            with pytest.raises(SessionHeld) as refused:
                before.admit(client, self.clients, self.now)
            assert refused.value.retry_after_s == pytest.approx(self.heard[holder] + SILENT_S - self.now)
        else:
            self.succession = before.admit(client, self.clients, self.now)
            self.had.append(client)
            assert self.succession.clients == tuple(self.had)

    @rule()
    def a_client_of_an_earlier_version_asks(self) -> None:
        self.clients.hear(NOBODY, self.now)
        assert self.succession.admit("", self.clients, self.now) == self.succession

    @invariant()
    def the_last_that_got_it_has_it(self) -> None:
        assert self.succession.clients == tuple(self.had)
        for client in NAMES:
            playing = [name for name, at in self.heard.items() if name != client and self.now - at < SILENT_S]
            assert self.clients.others(Sender(RUN, client=client), self.now) == bool(playing)
            assert not self.clients.others(Sender(OTHER_RUN, client=client), self.now)
        assert not self.clients.others(Sender(RUN), self.now)


TestClientsOfOneRun = ClientsOfOneRun.TestCase


def test_a_session_of_a_client_that_named_none_is_anybodys() -> None:
    clients, succession = Clients(), Succession()
    for client in ("", *NAMES):
        clients.hear(Sender(RUN, client=client), 0.0)
        assert succession.admit(client, clients, 0.0) == succession


def test_headers_say_who_sends() -> None:
    for sender in (NOBODY, Sender(RUN, "r", "ann", NAMES[0], yields=True, succeeds=NAMES[1]), Sender(client=NAMES[1])):
        headers = [(name.encode(), value.encode()) for name, value in sender.headers().items()]
        assert Sender.of(headers) == sender
    assert Sender.of([(b"proctor-client", b"me"), (b"proctor-yields", b"1"), (b"proctor-succeeds", b"x")]) == NOBODY


def test_parts_of_a_plan_play_beside_each_other() -> None:
    clients = Clients()
    one, other = (Sender(RUN, f"eval.{n}of2", client=NAMES[n - 1]) for n in (1, 2))
    clients.hear(one, 0.0)
    assert not clients.others(other, 0.0)
    assert clients.others(other._replace(name=one.name), 0.0), "a copy of the first part is not beside it"
