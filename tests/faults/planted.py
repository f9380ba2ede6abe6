"""Bugs that the tests of faults must not miss: `python -m tests.faults.planted [WORD ...]` plants them one at a time.

Each is planted in a copy of this checkout, and the test that is to notice it runs there. WORDs choose bugs by name.
The simulation's own planted bugs are in `tests/simulation/mutants.py`.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.pace import slowly
from tests.support import ROOT
from tests.unit.house.planting import Change, changed

LONGEST_S = slowly(600)
PARTS = ("agent_server", "environments", "eval_client", "proctor", "task_server", "tests", "examples", "pyproject.toml")


class Bug(NamedTuple):
    """`made` is `where: old => new`, the parts of a `Change`.

    The test is `folder/file.py::name` in `tests`, the name for pytest's -k.
    """

    name: str
    made: str
    test: str

    @property
    def change(self) -> Change:
        """What is replaced, and by what."""
        where, _, replaced = self.made.partition(": ")
        old, _, new = replaced.partition(" => ")
        return Change(where, old, new)


BUGS = (
    Bug(
        "a resumed copy does not ask whether another client plays",
        "Controller.renew: self._clients.others(sender, self._now()) => False",
        "faults/test_copies.py::ends_and_costs_it_nothing and 192-controller",
    ),
    Bug(
        "a client that a worker has not heard for long still has its sessions",
        "Clients.left_s: SILENT_S => 10 * SILENT_S",
        "faults/test_copies.py::killed_client_are_taken_over",
    ),
    Bug(
        "a client goes on in sessions that another one has taken",
        "Succession.admit: self.check_not_taken(client) => if client in self.clients:\n    return self",
        "faults/test_copies.py::stopped_while_another_took_over and copy]",
    ),
    Bug(
        "a client that can't reach its store keeps its sessions",
        "TaskWatcher._renew_leases: self._context.progress.trouble is not None => False",
        "faults/test_copies.py::cannot_write_to_its_store",
    ),
    Bug(
        "a session is anybody's",
        "Succession.admit: heard.left_s(self.clients[-1], now) => 0.0",
        "unit/task_server/test_clients.py::ClientsOfOneRun",
    ),
    Bug(
        "the journal forgets its turns on resume",
        "Store.journal: [turn_of(row) for row in rows] => []",
        "faults/test_kills.py::client_killed_20",
    ),
    Bug(
        "a stored plan is acted on, whoever wrote it",
        "plan_at_hand: text_hash is not None => True",
        "faults/hostile/test_foreign_plans.py::does_nothing and on_end",
    ),
    Bug(
        "a stored command reaches the terminal as it is",
        "_acts: json.dumps(value) => ' '.join(map(str, value))",
        "faults/hostile/test_foreign_plans.py::listed_without",
    ),
    Bug(
        "a plan's file that is gone stops a resume",
        "plan_at_hand: vouched and path.is_file() => vouched",
        "faults/hostile/test_foreign_plans.py::goes_on_silently",
    ),
    Bug(
        "a plan's file may change unnoticed",
        "plan_at_hand: _file_hash(path) != text_hash => False",
        "faults/hostile/test_foreign_plans.py::changed_file",
    ),
    Bug(
        "options of a stranger's store are taken up",
        "plan_at_hand: manifest.overrides if vouched or trust_stored else () => manifest.overrides",
        "faults/hostile/test_foreign_plans.py::another_user",
    ),
    Bug(
        "a state folder that can't be written ends a run",
        "list_run: (OSError, PoolError) => PoolError",
        "faults/hostile/test_foreign_plans.py::list_that_cannot",
    ),
    Bug(
        "a metric may be any number",
        "Finish.metrics: FiniteFloat => float",
        "faults/hostile/test_hostile_agents.py::is_no_number",
    ),
    Bug(
        "a report opens the files that a stranger's plan names",
        "scoring_environment: not known => False",
        "faults/hostile/test_foreign_plans.py::are_not_read",
    ),
    Bug(
        "a link in a run's folder is followed",
        "_execute: check_folder(request.folder) => pass",
        "faults/hostile/test_foreign_plans.py::not_followed",
    ),
    Bug(
        "a worker that failed to report once never reports again",
        "Reporter.run: refuses = isinstance(error, ApiError) and not error.retryable"
        " => refuses = False\nawait asyncio.Event().wait()",
        "faults/test_kills.py::controller_killed",
    ),
    Bug(
        "the controller places before its workers reported",
        "Controller._check_settled: left_s > 0 => left_s > 1e9",
        "faults/test_kills.py::controller_killed and relayed",
    ),
    Bug(
        "what a host has said is not in the next session",
        "Session.__init__: request.replies or () => ()",
        "faults/test_helper_models.py::paid_for_once",
    ),
    Bug(
        "what a host has said is told with the step only",
        "Session.current_step: [step] if replies is None else [step, self._reply_news] => [step]",
        "unit/task_server/worker/test_sessions.py::told_while_the_environment_still_works",
    ),
    Bug(
        "what a host costs is not counted",
        "_TrialReplies.add: kept.bought => not kept.bought",
        "faults/test_helper_models.py::counts_towards",
    ),
    Bug(
        "tries that could not be read are told with the answer only",
        "CachedModel._buy: self._replies.wasted(key, last) => pass",
        "unit/proctor/llm/test_cached_model.py::as_soon_as_it_is_paid",
    ),
    Bug(
        "a worker that could not be reached once is never probed again",
        "Reach.reaches: time.monotonic() >= known.again_at => time.monotonic() < 0",
        "integration/test_task_server.py::probed_again",
    ),
    Bug(
        "a worker that stood still ends its sessions",
        "Worker._watch: self._sessions.renew(self._sessions.held()) => await self._sessions.end_all()",
        "faults/test_kills.py::stopped_beyond",
    ),
    Bug(
        "the journal forgets what a host has said on resume",
        "PendingTrial.recall: TrialHistory(*store.journal(self.trial.id), replies=store.replies(self.trial.id))"
        " => TrialHistory(*store.journal(self.trial.id))",
        "faults/test_helper_models.py::client_killed_too",
    ),
    Bug(
        "lost sessions are not tried again",
        "RetryPolicy.wait_s: tries >= self.max_tries => tries >= 1",
        "faults/test_kills.py::one_of_two",
    ),
    Bug(
        "no patience for the last worker",
        "TaskWatcher._give_up_tasks: now - since > patience_s => now - since > 0.5",
        "faults/test_kills.py::the_only_worker",
    ),
    Bug(
        "a worker ends its sessions when its controller is away",
        "Worker._not_acknowledged: isinstance(error, TurnConflict) => True",
        "faults/test_kills.py::away_for_longer and auto",
    ),
    Bug(
        "a worker ends its sessions when no answer of its controller comes",
        "Worker._not_acknowledged: isinstance(error, TurnConflict) => True",
        "faults/test_network.py::black_hole and replies",
    ),
    Bug(
        "a worker says where its sessions are",
        "Controller.start: started.model_copy(update={'worker': ref.worker, 'url': ref.url}) => started",
        "faults/test_network.py::another_address and w1",
    ),
    Bug(
        "a client goes wherever a session is said to be",
        "TaskClient._probe: url not in {worker.url.rstrip('/') for worker in listed.workers}"
        " => not url and url not in {worker.url.rstrip('/') for worker in listed.workers}",
        "faults/test_network.py::another_address and client",
    ),
    Bug(
        "one attempt too many",
        "RetryPolicy.wait_s: tries >= self.max_tries => tries > self.max_tries",
        "faults/test_kills.py::sample_that_kills",
    ),
    Bug(
        "drain without grace",
        "run_service: 0.0 if at_once else grace_s => 0.0",
        "faults/test_kills.py::workers_drained",
    ),
    Bug(
        "a worker plays whatever data, prompts and parameters a run began with",
        "TrialPlayer._episode: self._digests[trial.task] => None",
        "faults/test_kills.py::other_parameters",
    ),
    Bug(
        "no lock on a run",
        "taken_over: renew = held.enter_context(sole_client(store)) => renew = None",
        "faults/test_kills.py::two_clients",
    ),
    Bug(
        "a repeated turn is refused",
        "Turns.replied: turn == self.answered and reply == self.reply => turn < 0",
        "faults/test_network.py::turns_whose_answers",
    ),
    Bug(
        "a repeated turn is applied as the next",
        "Turns.replied: self, False => Turns(answered=turn, reply=reply), True",
        "faults/test_network.py::doubled",
    ),
    Bug(
        "a broken connection is final",
        "_failure: ServerUnreachable(str(error), never_sent=isinstance(error, Unreachable)) => BadReply(str(error))",
        "faults/test_network.py::storm",
    ),
    Bug(
        "garbage is an empty answer",
        "ModelEndpoint._read: problem = error.errors(include_input=False)[0]"
        " => return Reply(Action(content=''), None, None, None)",
        "faults/hostile/test_hostile_agents.py::whatever_an_endpoint and 1",
    ),
    Bug(
        "a full disk is final",
        "Journal._write_until_durable: self._closing.wait(RETRY_S) => True",
        "faults/test_stores.py::full_disk_holds",
    ),
    Bug(
        "a client that is to stop waits for a full disk",
        "Interrupts._give_up_on_store: waiting_s < STORE_PATIENCE_S => True",
        "faults/test_stores.py::sigterm_on_a_full_disk",
    ),
    Bug(
        "a lack of descriptors is an endpoint's failure",
        "bounded_request: not lacks_descriptors(error) => True",
        "e2e/ends/test_descriptors.py::client_that_can_open_nothing",
    ),
    Bug(
        "a lack of descriptors is waited for without end",
        "Shortage.wait: now - self.since > self.patience_s => False",
        "e2e/ends/test_descriptors.py::client_that_can_open_nothing",
    ),
    Bug(
        "children have the raised limit",
        "run_on_end: give_back(process.pid) => pass",
        "e2e/ends/test_descriptors.py::children_of_a_run",
    ),
    Bug(
        "a world that blocks its worker is let alone",
        "may_block: seconds is not None => False",
        "faults/test_blocked_loops.py::costs_itself_alone and sleep",
    ),
    Bug(
        "a hung worker is waited for",
        "when_stdin_ends.wait: os.kill(os.getpid(), signal.SIGKILL) => pass",
        "faults/test_blocked_loops.py::hung_worker_ends and sleep",
    ),
    Bug(
        "a full disk can't be read",
        "_open_store_file: return _read_into_memory(path, options) => raise",
        "faults/test_stores.py::every_command_that_reads",
    ),
    Bug(
        "a locked store is final",
        "Journal._write_until_durable: self._closing.wait(RETRY_S) => True",
        "faults/test_stores.py::store_locked",
    ),
    Bug(
        "a database server that restarts is final",
        "Journal._write_until_durable: self._closing.wait(RETRY_S) => True",
        "faults/test_stores.py::postgresql_restarted",
    ),
    Bug(
        "no fence",
        "Journal.commit: hold_live(connection, self._store.run, self._fence) => pass",
        "integration/test_store.py::a_client_that_was_taken_over_writes_nothing_more",
    ),
    Bug(
        "a resume does not wait for the silence of a client that was stopped",
        "_take_up: time.monotonic() + HELD_S => time.monotonic()",
        "faults/test_stores.py::client_whose_lock",
    ),
    Bug(
        "leases on the wall clock",
        "Worker.__init__: time.monotonic => time.time",
        "faults/test_clocks.py::clocks_that_jump",
    ),
    Bug(
        "a container's death is a zero",
        "play_to_finish: Finish.away(cause) if lacks_descriptors(error) else "
        "Finish.fault(FinishReason.TASK_ERROR, cause)"
        " => Finish(reason=FinishReason.INVALID_ACTION, score=0.0)",
        "faults/hostile/test_hostile_agents.py::killed_containers",
    ),
    Bug(
        "a fork bomb's sandbox is not cleared",
        "Shell._restart: except EnvironmentFault as fault:\n    self._argv, last = ..."
        " => except ZeroDivisionError as fault:\n    self._argv, last = ...",
        "faults/hostile/test_hostile_agents.py::memory_forks",
    ),
    Bug(
        "no statement limit in SQLite",
        "SqliteSession._is_late: int(time.monotonic() > self._deadline) => 0",
        "faults/hostile/test_hostile_agents.py::query_that_never and sqlite",
    ),
    Bug(
        "no statement limit in MariaDB",
        "MySqlSession._in_time: asyncio.wait({work}, timeout=self._limit_s) => asyncio.wait({work})",
        "faults/hostile/test_hostile_agents.py::query_that_never and mariadb",
    ),
    Bug(
        "the worker's metrics need no token",
        "Access.open_paths: {'/healthz', '/readyz'} => {'/healthz', '/readyz', '/metrics'}",
        "faults/test_fuzz.py::worker",
    ),
    Bug(
        "a task's name that is not ASCII is a 500",
        "Worker._task: if name not in self._tasks:\n    ..."
        " => name.encode('ascii')\nif name not in self._tasks:\n    ...",
        "faults/test_fuzz.py::worker",
    ),
    Bug(
        "a worker's address that is none is a 500",
        "_host: ValueError => ZeroDivisionError",
        "faults/test_fuzz.py::controller",
    ),
    Bug(
        "the agents' 500 for a body that is no JSON",
        "parse_request: ValidationError => ZeroDivisionError",
        "faults/test_fuzz.py::agents",
    ),
    Bug(
        "a call that is not executed gets no answer",
        "ParsedReply.answered: len(self.call_ids) => min(len(self.call_ids), 2)",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "arguments nested too deep are an exception",
        "given_arguments: (ValueError, RecursionError) => ValueError",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "a call that can't be read costs no round",
        "play: tally.rounds += 1 => tally.rounds += not isinstance(question, UnreadableCall)",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "an environment takes its chance from nowhere",
        "CardGame.play: SampleGame(self.setup(sample), seed) => SampleGame(self.setup(sample), id(agent))",
        "faults/test_environments.py::second_run and card_game",
    ),
    Bug(
        "a session on another worker has another chance",
        "CardGame.play: SampleGame(self.setup(sample), seed) => SampleGame(self.setup(sample), id(agent))",
        "faults/test_environments.py::killed_worker and card_game",
    ),
    Bug(
        "each sandbox has a name of its own",
        "Containers._options: _HOSTNAME => ''",
        "e2e/sandbox/test_engines.py::same_name",
    ),
    Bug(
        "a resumed client pays for its turns again",
        "Store.journal: (newest, [turn_of(row) for row in rows], tokens_of(paid)) => (newest + 1, [], tokens_of(paid))",
        "faults/test_environments.py::killed_client and alfworld",
    ),
    Bug(
        "a part plays what belongs to another",
        "PlannedTrials._of_pair: self._plays(task, sample) => True",
        "e2e/run/test_parts.py::two_are_killed and sqlite",
    ),
    Bug(
        "a part takes all of the endpoint",
        "Endpoint.divided: limit and max(1, limit // of) => limit",
        "e2e/run/test_parts.py::concurrency and sqlite",
    ),
    Bug(
        "a part keeps its limits to itself where a server has all",
        "Endpoints._limit: self._pools_all and name not in (BUILTIN_ENDPOINT, COMMAND_ENDPOINT) => False",
        "e2e/run/test_parts.py::concurrency and postgresql",
    ),
    Bug(
        "a part is read twice",
        "parts._checked: numbers.count(number) > 1 => numbers.count(number) > 2",
        "e2e/run/test_parts.py::two_are_killed and sqlite",
    ),
    Bug(
        "what other parts have spent is not counted",
        "SharedSpending.__init__: part.siblings if part is not None and context.divided_by == 1 else () => ()",
        "e2e/run/test_parts.py::spend and postgresql",
    ),
    Bug(
        "a count of tokens may be of any size",
        "_counts: 0 <= count <= MOST_TOKENS => 0 <= count",
        "unit/proctor/llm/dialects/test_chat.py::no_counts",
    ),
    Bug(
        "what else a write raises ends the journal's thread",
        "Journal._write_until_durable: except Exception as error:\n    error.add_note(...)\n    ..."
        " => except ZeroDivisionError as error:\n    error.add_note(...)\n    ...",
        "integration/test_store.py::whatever_else and sqlite",
    ),
    Bug(
        "a head may be of any size",
        "_BoundedProtocol._parse: MAX_HEAD_BYTES - self._unproductive => MAX_HEAD_BYTES",
        "integration/test_http_limits.py::head_without_end",
    ),
    Bug(
        "connections without a token are not counted",
        "_Unauthorized.add: self._limit => 1 << 20",
        "integration/test_http_limits.py::keep_nobody_out",
    ),
    Bug(
        "a busy connection without a token is not ended",
        "_Unauthorized.add: next(iter(self)) => one",
        "faults/hostile/test_connections.py::costs_its_sender and cap and worker",
    ),
    Bug(
        "a cookie of the viewer's counts as no token",
        "ViewAccess.knows: super().knows(method, path, authorization) or self.is_valid(cookie_of({b'cookie': "
        "authorization}))"
        " => super().knows(method, path, authorization)",
        "faults/hostile/test_connections.py::showed_the_token and view",
    ),
    Bug(
        "a body without a token may take for ever",
        "_BoundedProtocol.on_headers_complete: self._incomplete = self in self.unauthorized => self._incomplete = 0",
        "faults/hostile/test_connections.py::whole_in_time and worker",
    ),
    Bug(
        "requests are parsed while an answer is owed",
        "_BoundedProtocol._parse: at < len(data) and self._is_open() and (not self._owes_answer())"
        " => at < len(data) and self._is_open()",
        "integration/test_http_limits.py::in_turn",
    ),
    Bug(
        "any number of requests may be queued",
        "_BoundedProtocol.on_headers_complete: MAX_QUEUED => 1 << 20",
        "integration/test_http_limits.py::queued_requests",
    ),
    Bug(
        "a connection counts from the end of its handshake",
        "_Handshake.connection_made: self.unauthorized.add(self) => pass",
        "integration/test_http_limits.py::never_shake_hands",
    ),
    Bug(
        "finishes that no environment gave are a 500",
        "Worker.summarize: (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) => ValueError",
        "integration/test_made_finishes.py::lacks_what and alfworld",
    ),
    Bug(
        "a worker's reply of no use is a 500 of the controller",
        "Controller._ask: (ServerUnreachable, BadReply, Unauthorized) => ServerUnreachable",
        "integration/test_task_server.py::no_use and shape",
    ),
    Bug(
        "a large body holds up what is under way",
        "parsed: LARGE_BODY_BYTES => LARGE_BODY_BYTES << 20",
        "integration/test_task_server.py::large_body",
    ),
    Bug(
        "workers that differ serve nobody",
        "TaskPool._serving: digest in self._groups => digest in self._groups and len(self._digests()) < 2",
        "integration/test_task_server.py::bogus_digest",
    ),
    Bug(
        "a worker that differs serves a run under way",
        "TaskPool._serving: [self._groups[digest]] if digest in self._groups else [] => list(self._groups.values())",
        "integration/test_task_server.py::bogus_digest",
    ),
    Bug(
        "a key is looked for as it is written only",
        "found_in: any(map(_bare(text).__contains__, _forms_of(secret))) => False",
        "unit/proctor/llm/test_pasted_keys.py::repeats_escaped",
    ),
    Bug(
        "a key that was pasted is shown",
        "looks_secret: any((not _PLACEHOLDER.fullmatch(each) for each in found)) => False",
        "unit/proctor/llm/test_pasted_keys.py::in_the_file",
    ),
    Bug(
        "what a damaged log has lost is not looked for",
        "losses: not any(lost) => lost",
        "e2e/run/test_store_files.py::damaged_log_is_told",
    ),
    Bug(
        "runs on one key know nothing of each other",
        "Sharing._change: shared => not shared",
        "e2e/run/test_shared_endpoints.py::two_runs_on_one_key",
    ),
    Bug(
        "requests a minute are not counted",
        "reserve: max(by_requests, due - BURST_S) + each_s => max(by_requests, due - BURST_S)",
        "unit/eval_client/core/limits/test_rates.py::no_minute",
    ),
    Bug(
        "what an endpoint demands back is lost in a replay",
        "Store.journal: [turn_of(row) for row in rows]"
        " => [t if t.reply.kind == 'stop' else t.model_copy(update={'reply': t.reply.model_copy(update={'action': "
        "t.reply.action.without_echo()})}) for t in map(turn_of, rows)]",
        "faults/test_kills.py::killed_50_times",
    ),
    Bug(
        "the tools of a conversation are forgotten with the client",
        "Episode._catch_up: self._offered.note(observation) => pass",
        "faults/test_kills.py::killed_50_times",
    ),
    Bug(
        "an endpoint that takes no tools ends its agent's other tasks too",
        "Schedule._attempt_ended: [job.pair] => [pair for pair in self.limits.pairs if pair[0] == job.pair[0]]",
        "e2e/run/test_tools.py::without_tools_ends_its_pair",
    ),
)


def plant(bug: Bug, tree: Path) -> str:
    """Plant a bug in a copy, run its test there, mend it: `caught`, or how it was missed."""
    test_file, _, name = bug.test.partition("::")
    file, _, changed_tree = changed(bug.change, tree)
    sound = file.read_bytes()
    file.write_text(ast.unparse(changed_tree), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", f"tests/{test_file}", "-k", name, "--tb=line"]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LONGEST_S} s"
    finally:
        file.write_bytes(sound)
    return "caught" if done.returncode == 1 else f"MISSED, pytest ended with {done.returncode}: {done.stdout[-300:]}"


def main(words: list[str]) -> int:
    """1 where a bug was missed."""
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "main"
        tree.mkdir()
        for part in PARTS:
            source = ROOT / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / part)
        for bug in chosen:
            began = time.monotonic()
            verdict = plant(bug, tree)
            missed += verdict != "caught"
            print(f"{verdict}: {bug.name} | {bug.test} | {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} planted bugs caught")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
