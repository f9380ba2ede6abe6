"""The kinds of problems; docs/reference/doctor.md lists them too."""

from typing import NamedTuple

from proctor.llm.outcome import TOOLS_FIX


class ProblemKind(NamedTuple):
    """Why a problem matters and how to fix it."""

    why: str
    fix: str


_AGENT = "no trial of this agent could be scored"

PROBLEMS: dict[str, ProblemKind] = {
    # this machine
    "package-missing": ProblemKind(
        "Proctor itself needs this package",
        "pip install proctor, into the Python environment of the command `proctor`",
    ),
    "extra-missing": ProblemKind(
        "this machine can't play tasks of this environment", "pip install the package that is named"
    ),
    "docker-down": ProblemKind(
        "the sandboxes of environment `os` are containers",
        "start the engine (systemctl start docker), or name another: export DOCKER_HOST=unix:///path/to/docker.sock",
    ),
    "docker-image-missing": ProblemKind(
        "sandboxes start from this image", "docker build -t proctor-os:latest docker/os, or name yours: `image`"
    ),
    "docker-disk-short": ProblemKind("sandboxes write to it; a full disk stops the engine", "docker system prune"),
    "docker-disk-unbounded": ProblemKind(
        "one agent can fill the engine's disk, which stops all of its sandboxes",
        "set the task's parameters to {disk: tmpfs}, or move Docker's data root to xfs with pquota, btrfs or zfs",
    ),
    "mariadb-missing": ProblemKind(
        "environment `db` starts a private MariaDB server by default",
        "apt-get install mariadb-server, or set the task's parameters to {engine: sqlite}",
    ),
    "namespaces-refused": ProblemKind(
        "the light engine of environment `os`, which the demo uses without Docker, needs namespaces",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or use Docker",
    ),
    "runs-folder-unwritable": ProblemKind("runs are stored in this folder", "choose another folder: -o FOLDER"),
    "runs-folder-network": ProblemKind(
        "SQLite needs locks and shared memory that such file systems do not keep: a run can be damaged there",
        "choose a folder on a disk of this machine: -o FOLDER, or a database server: --store URL",
    ),
    "disk-short": ProblemKind(
        "a run waits while the disk is full", "free some space, or choose another folder: -o FOLDER"
    ),
    "memory-short": ProblemKind(
        "the system kills processes when memory runs out", "close other programs, or lower capacities"
    ),
    "descriptors-few": ProblemKind(
        "each running trial opens files and connections", "ulimit -n 8192, in the shell that starts the run"
    ),
    # the store
    "store-unreachable": ProblemKind("no result can be recorded", "check the URL, and that the server runs"),
    "store-rights": ProblemKind(
        "a run creates tables and writes rows",
        "grant the account CREATE, SELECT, INSERT, UPDATE and DELETE in the database",
    ),
    "store-rows": ProblemKind(
        "a turn with more than that is a fault of its trial", "set the server's max_allowed_packet to 16M or more"
    ),
    "store-schema": ProblemKind(
        "this version can't read or resume its runs",
        "use the version of Proctor that wrote them, or another database",
    ),
    # the plan
    "plan-broken": ProblemKind("the plan can't be run", "correct the line that is named"),
    "key-unset": ProblemKind("most endpoints refuse requests without a key", "set the variable, or add it to .env"),
    "key-broken": ProblemKind("no request can be sent with this key", "copy the key again, or correct what names it"),
    # agents
    "agent-key": ProblemKind(_AGENT, "set the variable to a key of this endpoint that may use the model"),
    "agent-model": ProblemKind(_AGENT, "correct `model`"),
    "agent-url": ProblemKind(_AGENT, "correct `base_url`: up to and with /v1, without /chat/completions"),
    "agent-command": ProblemKind(_AGENT, "install it, or write its absolute path"),
    "agent-unreachable": ProblemKind(_AGENT, "start the endpoint, or correct `base_url`"),
    "agent-silent": ProblemKind(
        "trials wait for each answer, up to the endpoint's `deadline_s`",
        "check the endpoint; if it is only slow, run the doctor again with --patience 60",
    ),
    "agent-quota": ProblemKind(_AGENT, "add credit to the account, or use another key"),
    "replicas-file": ProblemKind(
        "the servers of this endpoint come from it", "write one URL a line into a file of yours that others can't write"
    ),
    "replicas-unlike": ProblemKind(
        "trials of one agent would be played by different models",
        "start all servers with the same model and settings; vLLM tells cached tokens only with "
        "--enable-prompt-tokens-details",
    ),
    "agent-throttled": ProblemKind("the endpoint is busy; a run retries and is slow", "lower `concurrency`, or wait"),
    "agent-tls": ProblemKind(_AGENT, "correct http or https in `base_url`, or the endpoint's certificate"),
    "agent-failing": ProblemKind("trials are retried and may stay unscored", "read the endpoint's own log"),
    "agent-refuses": ProblemKind("every request of a run would be refused", "correct `sampling` or `model`"),
    "agent-reply": ProblemKind("its replies can't be read", "correct `base_url`: something else answers there"),
    "agent-tools-refused": ProblemKind("its tasks with `protocol: tools` can't be played", TOOLS_FIX),
    "agent-tools-unused": ProblemKind(
        "a session without calls scores 0, in some worlds only after all its turns, which are paid for",
        "name a model that calls functions, add `tool_choice: required` to `sampling`, or play `protocol: text`",
    ),
    "agent-tools-history": ProblemKind(
        "its trials fail at their second turn",
        "set the agent's `reasoning` or `system_role` to what the endpoint demands (docs/how-to/agents.md)",
    ),
    # task servers
    "controller-unreachable": ProblemKind("no session can be started", "start the controller, or correct `controller`"),
    "controller-tls": ProblemKind(
        "no request is sent to it", "name its authority (`tls.ca`), or correct http or https"
    ),
    "controller-other": ProblemKind("no session can be started", "correct `controller`: something else answers there"),
    "controller-token": ProblemKind(
        "the controller refuses every request", "set the variable to the controller's token"
    ),
    "controller-not-ready": ProblemKind(
        "sessions are refused until it is ready", "wait; the finding names the controller's reason"
    ),
    "task-unknown": ProblemKind(
        "its trials would stay unscored", "proctor worker --tasks FILE --controller URL, with this task in FILE"
    ),
    "task-waiting": ProblemKind("none of its sessions can start", "correct what the worker reports"),
    "task-workers-differ": ProblemKind(
        "a new run can't choose between them; a run in progress uses the workers whose task is as at its start",
        "start the workers that are named first with the data, parameters and version of the others",
    ),
    "task-no-capacity": ProblemKind(
        "none of its sessions can start", "give the task a `capacity` in its worker's task file"
    ),
    "task-full": ProblemKind("its trials wait until sessions of other runs end", "start another worker, or wait"),
    "task-untrusted": ProblemKind(
        "a model could break out of its sandbox",
        "use the environment's full engine (for os: parameters: {engine: docker})",
    ),
    "task-simplified": ProblemKind(
        "a model's score says little as the task is set up",
        "set the field that the line names (for stss: parameters: {driver: {base_url: ..., model: ...}}, "
        "for simulbench: parameters: {judge: ...})",
    ),
    "task-empty": ProblemKind("the task has no trials", "correct `data`"),
    "worker-relayed": ProblemKind(
        "its turns go through the controller, one more hop each",
        "start it with --advertise and a URL that this machine reaches",
    ),
    "version-differs": ProblemKind(
        "prompts and scores may differ, and one process may refuse the messages of another",
        "install the same version everywhere: pip install proctor==VERSION, and restart the process",
    ),
    # the environments and data of tasks
    "environment-missing": ProblemKind("the task can't be played", "pip install the package that is named"),
    "environment-fault": ProblemKind("none of its sessions could start", "correct the cause that is named"),
    "environment-late": ProblemKind(
        "the start of a run waits for it, up to limits.patience_s", "run the doctor again with --patience 60"
    ),
    "data-broken": ProblemKind("the task can't be played", "correct `data`, or the file at the place that is named"),
    "data-differs": ProblemKind(
        "built-in agents would play other samples than the servers", "give this plan and the workers the same data"
    ),
    "policy-missing": ProblemKind(
        "the agent can't play the task, so the run is refused",
        "list the other pairs under `assignments`, or add the policy's method to the environment",
    ),
    "not-comparable": ProblemKind(
        "its scores can't be compared with published ones", "see docs/reference/environments/"
    ),
    # the run to be resumed
    "run-plan-changed": ProblemKind("the run would not be resumed", "undo the change, or start a new run"),
    "run-data-changed": ProblemKind(
        "the run would not be resumed", "restore data, prompts and settings, or start a new run"
    ),
    "run-damaged": ProblemKind(
        "lost turns would be paid for again, and lost results would be missing in the report",
        "restore its store from a copy, or start a new run; `proctor resume` prints whether the run can be resumed",
    ),
    "run-unreadable": ProblemKind("the run can't be resumed", "name another run, or start a new one"),
    # the doctor itself
    "check-failed": ProblemKind("the result of this check is unknown", "please report this, with the line above"),
    "check-late": ProblemKind("the result of this check is unknown", "run the doctor again with --patience 60"),
}
