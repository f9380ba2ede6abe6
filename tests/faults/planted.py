"""Bugs that the tests of faults must not miss: `python -m tests.faults.planted [WORD ...]` plants them one at a time.

Each is planted in a copy of this checkout, and the test that is to notice it runs there. WORDs choose bugs by name.
The simulation's own planted bugs are in `tests/simulation/mutants.py`.
"""

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

LONGEST_S = slowly(600)
PARTS = ("agent_server", "environments", "eval_client", "proctor", "task_server", "tests", "examples", "pyproject.toml")


class Bug(NamedTuple):
    """`old` in a file becomes `new`, once; the test is `folder/file.py::name` in `tests`, the name for pytest's -k."""

    name: str
    file: str
    old: str
    new: str
    test: str


BUGS = (
    Bug(
        "the journal forgets its turns on resume",
        "eval_client/store/store.py",
        "return newest, [_turn(row) for row in rows],",
        "return newest, [],",
        "faults/test_kills.py::client_killed_20",
    ),
    Bug(
        "a worker that failed to report once never reports again",
        "task_server/heartbeat.py",
        "                silent = True\n",
        "                silent = True\n                await asyncio.Event().wait()\n",
        "faults/test_kills.py::controller_killed",
    ),
    Bug(
        "the controller places before its workers reported",
        "task_server/controller/controller.py",
        "        if left_s > 0:",
        "        if left_s > 1e9:",
        "faults/test_kills.py::controller_killed and relayed",
    ),
    Bug(
        "what a host has said is not in the next session",
        "task_server/worker/sessions.py",
        "SessionReplies(request.replies or (), ",
        "SessionReplies((), ",
        "faults/test_helper_models.py::paid_for_once",
    ),
    Bug(
        "what a host has said is told with the step only",
        "task_server/worker/sessions.py",
        "awaited: list[asyncio.Future[Any]] = [step] if replies is None else [step, self._reply_news]",
        "awaited, has_news = [step], False",
        "unit/task_server/worker/test_sessions.py::told_while_the_environment_still_works",
    ),
    Bug(
        "what a host costs is not counted",
        "eval_client/trial/attempt_log.py",
        "for kept in replies if kept.bought",
        "for kept in replies if not kept.bought",
        "faults/test_helper_models.py::counts_towards",
    ),
    Bug(
        "tries that could not be read are told with the answer only",
        "proctor/llm/cached_model.py",
        "            self._replies.wasted(key, last)\n",
        "",
        "unit/proctor/llm/test_cached_model.py::as_soon_as_it_is_paid",
    ),
    Bug(
        "a worker that could not be reached once is never probed again",
        "task_server/client/reach.py",
        "time.monotonic() >= known.again_at",
        "time.monotonic() < 0",
        "integration/test_task_server.py::probed_again",
    ),
    Bug(
        "a gap in what a judge said is not missed",
        "eval_client/store/damage.py",
        ".having(there < kept)",
        ".having(there < 0)",
        "e2e/run/test_store_files.py::replies_of_a_judge",
    ),
    Bug(
        "a worker that stood still ends its sessions",
        "task_server/worker/worker.py",
        "            expired = self._sessions.expire()\n",
        "            expired = self._sessions.expire()\n"
        "            if self._is_cut_off():\n"
        "                await self._sessions.end_all()\n",
        "faults/test_kills.py::stopped_beyond",
    ),
    Bug(
        "the journal forgets what a host has said on resume",
        "eval_client/trial/attempt_log.py",
        ", replies=store.replies(self.trial.id))",
        ")",
        "faults/test_helper_models.py::client_killed_too",
    ),
    Bug(
        "lost sessions are not tried again",
        "proctor/retry.py",
        "tries >= self.max_tries",
        "tries >= 1",
        "faults/test_kills.py::one_of_two",
    ),
    Bug(
        "no patience for the last worker",
        "eval_client/run/task_watcher.py",
        "if now - since > self._patience_s and",
        "if now - since > 0.5 and",
        "faults/test_kills.py::the_only_worker",
    ),
    Bug(
        "a worker ends its sessions when its controller is away",
        "task_server/heartbeat.py",
        "                silent = True\n",
        "                silent = True\n                await self._on_replaced()\n",
        "faults/test_kills.py::away_for_longer and auto",
    ),
    Bug(
        "a worker ends its sessions when no answer of its controller comes",
        "task_server/heartbeat.py",
        "                silent = True\n",
        "                silent = True\n                await self._on_replaced()\n",
        "faults/test_network.py::black_hole and replies",
    ),
    Bug(
        "a worker says where its sessions are",
        "task_server/controller/controller.py",
        'return started.model_copy(update={"worker": ref.worker, "url": ref.url})',
        "return started",
        "faults/test_network.py::another_address and w1",
    ),
    Bug(
        "a client goes wherever a session is said to be",
        "task_server/client/client.py",
        "            if url not in {",
        "            if not url and url not in {",
        "faults/test_network.py::another_address and client",
    ),
    Bug(
        "one attempt too many",
        "proctor/retry.py",
        "tries >= self.max_tries",
        "tries > self.max_tries",
        "faults/test_kills.py::sample_that_kills",
    ),
    Bug(
        "drain without grace",
        "task_server/serve.py",
        "service.drain(0.0 if at_once else grace_s)",
        "service.drain(0.0)",
        "faults/test_kills.py::workers_drained",
    ),
    Bug(
        "a worker plays whatever data, prompts and parameters a run began with",
        "eval_client/trial/player.py",
        "            digest=self._digests[trial.task],\n",
        "            digest=None,  # type: ignore[arg-type]\n",
        "faults/test_kills.py::other_parameters",
    ),
    Bug(
        "no lock on a run",
        "eval_client/store/member.py",
        "with lock.sole_client(store):",
        "with contextlib.nullcontext():",
        "faults/test_kills.py::two_clients",
    ),
    Bug(
        "a repeated turn is refused",
        "task_server/wire/turns.py",
        "if turn == self.answered and reply == self.reply:",
        "if turn < 0:",
        "faults/test_network.py::turns_whose_answers",
    ),
    Bug(
        "a repeated turn is applied as the next",
        "task_server/wire/turns.py",
        "if turn == self.answered and reply == self.reply:\n            return self, False\n"
        "        if turn == self.answered + 1 and",
        "if turn <= self.answered + 1 and",
        "faults/test_network.py::doubled",
    ),
    Bug(
        "a broken connection is final",
        "task_server/http/transport.py",
        "return ServerUnreachable(str(error), never_sent=isinstance(error, Unreachable))",
        "return BadReply(str(error))",
        "faults/test_network.py::storm",
    ),
    Bug(
        "garbage is an empty answer",
        "proctor/llm/model.py",
        "            problem = error.errors(include_input=False)[0]\n",
        "            return Reply(Action(content=''), None, None, None)\n",
        "faults/test_endpoint.py::1",
    ),
    Bug(
        "a full disk is final",
        "eval_client/store/journal.py",
        "                if self._closing.wait(RETRY_S):",
        "                if True:",
        "faults/test_stores.py::full_disk_holds",
    ),
    Bug(
        "a client that is to stop waits for a full disk",
        "eval_client/interrupts.py",
        "        while waiting_s < STORE_PATIENCE_S:",
        "        while True:",
        "faults/test_stores.py::sigterm_on_a_full_disk",
    ),
    Bug(
        "a locked store is final",
        "eval_client/store/journal.py",
        "                if self._closing.wait(RETRY_S):",
        "                if True:",
        "faults/test_stores.py::store_locked",
    ),
    Bug(
        "a database server that restarts is final",
        "eval_client/store/journal.py",
        "                if self._closing.wait(RETRY_S):",
        "                if True:",
        "faults/test_stores.py::postgresql_restarted",
    ),
    Bug(
        "no fence",
        "eval_client/store/journal.py",
        "hold_live(connection, self._store.run, self._shard)",
        "pass",
        "faults/test_stores.py::client_whose_lock",
    ),
    Bug(
        "leases on the wall clock",
        "task_server/worker/worker.py",
        "now: Callable[[], float] = time.monotonic",
        "now: Callable[[], float] = time.time",
        "faults/test_clocks.py::clocks_that_jump",
    ),
    Bug(
        "a container's death is a zero",
        "proctor/session/play.py",
        '        finish = Finish.fault(FinishReason.TASK_ERROR, f"{type(error).__name__}: {error}")',
        "        finish = Finish(reason=FinishReason.INVALID_ACTION, score=0.0)",
        "faults/test_hostile_agents.py::killed_containers",
    ),
    Bug(
        "a fork bomb's sandbox is not cleared",
        "proctor/sandbox/shell.py",
        "            except EnvironmentFault as fault:\n                self._argv",
        "            except ZeroDivisionError as fault:\n                self._argv",
        "faults/test_hostile_agents.py::memory_forks",
    ),
    Bug(
        "no statement limit in SQLite",
        "environments/database/engines/sqlite.py",
        "return int(time.monotonic() > self._deadline)",
        "return 0",
        "faults/test_hostile_agents.py::query_that_never and sqlite",
    ),
    Bug(
        "no statement limit in MariaDB",
        "environments/database/engines/mysql.py",
        "asyncio.wait({work}, timeout=self._limit_s)",
        "asyncio.wait({work})",
        "faults/test_hostile_agents.py::query_that_never and mariadb",
    ),
    Bug(
        "the worker's metrics need no token",
        "proctor/http/auth.py",
        '= frozenset({"/healthz", "/readyz"})',
        '= frozenset({"/healthz", "/readyz", "/metrics"})',
        "faults/test_fuzz.py::worker",
    ),
    Bug(
        "a task's name that is not ASCII is a 500",
        "task_server/worker/worker.py",
        "        if name not in self._tasks:\n",
        "        if name not in self._tasks:\n            name.encode('ascii')\n",
        "faults/test_fuzz.py::worker",
    ),
    Bug(
        "a worker's address that is none is a 500",
        "task_server/controller/admission.py",
        "    except ValueError as error:\n        raise BadRequest",
        "    except ZeroDivisionError as error:\n        raise BadRequest",
        "faults/test_fuzz.py::controller",
    ),
    Bug(
        "the agents' 500 for a body that is no JSON",
        "agent_server/chat_completions.py",
        "    except ValidationError as error:",
        "    except ZeroDivisionError as error:",
        "faults/test_fuzz.py::agents",
    ),
    Bug(
        "a call that is not executed gets no answer",
        "proctor/tools/readers.py",
        "padded = [*texts, *[NOT_EXECUTED] * (len(self.call_ids) - len(texts))]",
        "padded = [*texts, *[NOT_EXECUTED] * (min(len(self.call_ids), 2) - len(texts))]",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "arguments nested too deep are an exception",
        "proctor/tools/functions.py",
        "except (ValueError, RecursionError) as error:",
        "except ValueError as error:",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "a call that can't be read costs no round",
        "environments/lateral_thinking/game.py",
        "        tally.rounds += 1\n",
        "        tally.rounds += not isinstance(question, UnreadableCall)\n",
        "faults/test_fuzz_calls.py::ltp",
    ),
    Bug(
        "an environment takes its chance from nowhere",
        "environments/card_game/environment.py",
        "seed: int = 0) -> Finish:",
        "seed: int = 0) -> Finish:\n        seed = id(agent)",
        "faults/test_environments.py::second_run and card_game",
    ),
    Bug(
        "a session on another worker has another chance",
        "environments/card_game/environment.py",
        "seed: int = 0) -> Finish:",
        "seed: int = 0) -> Finish:\n        seed = id(agent)",
        "faults/test_environments.py::killed_worker and card_game",
    ),
    Bug(
        "each sandbox has a name of its own",
        "proctor/sandbox/docker_containers.py",
        '            "hostname": _HOSTNAME,',
        "           ",
        "e2e/sandbox/test_engines.py::same_name",
    ),
    Bug(
        "a resumed client pays for its turns again",
        "eval_client/store/store.py",
        "return newest, [_turn(row) for row in rows],",
        "return newest + 1, [],",
        "faults/test_environments.py::killed_client and db",
    ),
    Bug(
        "a client that was taken for lost goes on writing",
        "eval_client/store/connection.py",
        '    if connection.execute(_HOLD, {"b_run": run, "b_shard": shard}).rowcount != 1:',
        '    if connection.execute(_HOLD, {"b_run": run, "b_shard": shard}).rowcount > 1:',
        "faults/test_shards.py::taken_for_lost",
    ),
    Bug(
        "what a lost client held stays its own",
        "eval_client/store/shards.py",
        "            return False\n        _free(connection, run, shard)\n        return True\n\n\ndef leave",
        "            return False\n        return True\n\n\ndef leave",
        "faults/test_shards.py::one_of_three",
    ),
    Bug(
        "a 429 is heard by one client alone",
        "eval_client/core/limits/shares.py",
        "    if feedback.throttled:",
        "    if feedback.answered < 0:",
        "faults/test_shards.py::a_429",
    ),
    Bug(
        "trials are claimed that another client holds",
        "eval_client/store/claims.py",
        "waiting = sa.select(t.id).where(_pending(run, t.holder == FREE),",
        "waiting = sa.select(t.id).where(_pending(run, t.holder != SETTLED),",
        "faults/test_shards.py::play_one_run",
    ),
    Bug(
        "a client that alone can't reach the controller gives up what others could play",
        "eval_client/core/limits/shares.py",
        "return frozenset.intersection(",
        "return frozenset().union(",
        "faults/test_shards.py::alone_can_not",
    ),
    Bug(
        "a task that is given up doesn't say why",
        "eval_client/trial/player.py",
        "(pending, None, Finish.fault(FinishReason.TASK_ERROR, cause))",
        '(pending, None, Finish.fault(FinishReason.TASK_ERROR, "gone"))',
        "faults/test_shards.py::given_up_by_all",
    ),
    Bug(
        "a run is closed over a client that joined while it was summarized",
        "eval_client/execute.py",
        "if member.alone or await must_close(member, ended):  # unless",
        "if True:  # unless",
        "faults/test_shards.py::just_joined",
    ),
    Bug(
        "a client that drains keeps what it has not begun",
        "eval_client/core/schedule.py",
        "        for jobs in self.backlog.drop_all():\n            self._return(jobs)\n        self._out",
        "        self._out",
        "faults/test_shards.py::holds_that_is_told",
    ),
    Bug(
        "a client that ends at once leaves its sessions",
        "eval_client/trial/player.py",
        "                self._end_session(url, session)",
        "                pass",
        "faults/test_shards.py::told_to_end_at_once",
    ),
    Bug(
        "a client gives no sign any more once its database was away",
        "eval_client/store/member.py",
        "            if not is_transient(error):\n                raise\n            self._drop()",
        "            raise",
        "faults/test_shards.py::postgresql_restarted",
    ),
    Bug(
        "the journal forgets its turns when another client goes on",
        "eval_client/store/store.py",
        "return newest, [_turn(row) for row in rows],",
        "return newest, [],",
        "faults/test_shards.py::killed_ten",
    ),
    Bug(
        "a count of tokens may be of any size",
        "proctor/llm/wire.py",
        "Field(ge=0, le=MOST_TOKENS)",
        "Field(ge=0)",
        "unit/proctor/llm/dialects/test_chat.py::no_counts",
    ),
    Bug(
        "what else a write raises ends the journal's thread",
        "eval_client/store/journal.py",
        "            except Exception as error:  # ours",
        "            except ZeroDivisionError as error:  # ours",
        "integration/test_store.py::whatever_else and sqlite",
    ),
    Bug(
        "a head may be of any size",
        "proctor/http/bounded_protocol.py",
        "            if room <= 0:",
        "            room = MAX_HEAD_BYTES\n            if room <= 0:",
        "integration/test_http_limits.py::head_without_end",
    ),
    Bug(
        "connections without a token are not counted",
        "proctor/http/bounded_protocol.py",
        "        if len(self._all) > self._limit:",
        "        if len(self._all) > 1 << 20:",
        "integration/test_http_limits.py::keep_nobody_out",
    ),
    Bug(
        "a connection counts from the end of its handshake",
        "proctor/http/bounded_protocol.py",
        "            self.unauthorized.add(self)\n        accepted.abort()",
        "        accepted.abort()",
        "integration/test_http_limits.py::never_shake_hands",
    ),
    Bug(
        "finishes that no environment gave are a 500",
        "task_server/worker/worker.py",
        "        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:",
        "        except ValueError as error:",
        "integration/test_made_finishes.py::lacks_what and alfworld",
    ),
    Bug(
        "a worker's reply of no use is a 500 of the controller",
        "task_server/controller/controller.py",
        "        except (ServerUnreachable, BadReply) as error:\n            if _refuses",
        "        except ServerUnreachable as error:\n            if _refuses",
        "integration/test_task_server.py::no_use and shape",
    ),
    Bug(
        "a large body holds up what is under way",
        "task_server/http/app.py",
        "                if len(body) > LARGE_BODY_BYTES:",
        "                if len(body) > LARGE_BODY_BYTES << 20:",
        "integration/test_task_server.py::large_body",
    ),
    Bug(
        "workers that differ serve nobody",
        "task_server/controller/task_pool.py",
        "        return [self._groups[digest]] if digest in self._groups else []",
        "        return [self._groups[digest]] if digest in self._groups and len(self._digests()) < 2 else []",
        "integration/test_task_server.py::bogus_digest",
    ),
    Bug(
        "a worker that differs serves a run under way",
        "task_server/controller/task_pool.py",
        "        return [self._groups[digest]] if digest in self._groups else []",
        "        return list(self._groups.values())",
        "integration/test_task_server.py::bogus_digest",
    ),
    Bug(
        "a key is looked for as it is written only",
        "proctor/observability/redaction.py",
        '    return "\\\\u00" in text or "\\\\/" in text',
        "    return False",
        "unit/proctor/llm/test_pasted_keys.py::repeats_escaped",
    ),
    Bug(
        "a key that was pasted is shown",
        "proctor/observability/redaction.py",
        "    return any(shape.search(text) for shape in (_KEY_LIKE, _QUERY_KEY, _RANDOM))",
        "    return False",
        "unit/proctor/llm/test_pasted_keys.py::in_the_file",
    ),
    Bug(
        "what a damaged log has lost is not looked for",
        "eval_client/store/wal.py",
        "    if readable >= acknowledged:",
        "    if readable >= 0:",
        "e2e/run/test_store_files.py::damaged_log_is_told",
    ),
    Bug(
        "turns that are gone are not missed",
        "eval_client/store/damage.py",
        "c.turns_there < c.turns",
        "c.turns_there < 0",
        "e2e/run/test_store_files.py::that_are_gone",
    ),
    Bug(
        "runs on one key know nothing of each other",
        "eval_client/run/sharing.py",
        "place.shared_name(url, key) if shared else",
        "place.shared_name(url, key) if not shared else",
        "e2e/run/test_shared_endpoints.py::two_runs_on_one_key",
    ),
    Bug(
        "requests a minute are not counted",
        "eval_client/core/limits/rates.py",
        "max(by_requests, due - BURST_S) + each_s",
        "max(by_requests, due - BURST_S)",
        "unit/eval_client/core/limits/test_rates.py::no_minute",
    ),
    Bug(
        "what an endpoint demands back is lost in a replay",
        "eval_client/store/store.py",
        "return newest, [_turn(row) for row in rows],",
        "return newest, [t if t.reply.kind == 'stop' else t.model_copy(update={'reply': t.reply.model_copy(update={"
        "'action': t.reply.action.without_echo()})}) for t in map(_turn, rows)],",
        "faults/test_tools.py::killed_50_times",
    ),
    Bug(
        "the tools of a conversation are forgotten with the client",
        "eval_client/trial/episode.py",
        "            self._offered.note(observation)\n",
        "",
        "faults/test_tools.py::killed_50_times",
    ),
    Bug(
        "an endpoint that takes no tools ends its agent's other tasks too",
        "eval_client/core/schedule.py",
        "self._refuse([job.pair], end.cause)",
        "self._refuse([pair for pair in self.limits.pairs if pair[0] == job.pair[0]], end.cause)",
        "e2e/run/test_tools.py::without_tools_ends_its_pair",
    ),
)


def plant(bug: Bug, tree: Path) -> str:
    """Plant a bug in a copy, run its test there, mend it: `caught`, or how it was missed."""
    file, (test_file, _, name) = tree / bug.file, bug.test.partition("::")
    sound = file.read_text(encoding="utf-8")
    file.write_text(sound.replace(bug.old, bug.new, 1), encoding="utf-8")
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
        file.write_text(sound, encoding="utf-8")
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
