"""All that a finding can be about; docs/doctor.md lists the same."""

from typing import NamedTuple


class FindingKind(NamedTuple):
    """Why it matters, and what to do where it is amiss; both are empty for what is only ever well or left out."""

    why: str = ""
    fix: str = ""


_AGENT = "every trial of this agent would stay owed"

KINDS: dict[str, FindingKind] = {
    # this machine
    "python": FindingKind(),
    "package-missing": FindingKind(
        "Proctor itself needs this package",
        "pip install proctor, into the environment that the command `proctor` is of",
    ),
    "extra": FindingKind(),
    "extra-missing": FindingKind(
        "tasks of this environment can't be played by this machine", "pip install what is named"
    ),
    "docker": FindingKind(),
    "docker-down": FindingKind(
        "the sandboxes of environment `os` are containers",
        "start the engine (systemctl start docker), or name another: export DOCKER_HOST=unix:///path/to/docker.sock",
    ),
    "docker-image": FindingKind(),
    "docker-image-missing": FindingKind(
        "sandboxes start from this image", "docker build -t proctor-os:latest docker/os, or name yours: `image`"
    ),
    "docker-disk": FindingKind(),
    "docker-disk-short": FindingKind("sandboxes write there; a full disk stops the engine", "docker system prune"),
    "docker-quota": FindingKind(),
    "docker-disk-unbounded": FindingKind(
        "one agent can fill the engine's disk, which stops all sandboxes there",
        "set the task's parameters to {disk: tmpfs}, or move Docker's data root to xfs with pquota, btrfs or zfs",
    ),
    "docker-pools": FindingKind(),
    "docker-pools-short": FindingKind(
        "a network that can't get addresses can't be made: `docker compose up` and stacks fail",
        "docker network prune, or add to `default-address-pools` in the engine's daemon.json",
    ),
    "mariadb": FindingKind(),
    "mariadb-missing": FindingKind(
        "environment `db` starts a private MariaDB server unless told otherwise",
        "apt-get install mariadb-server, or set the task's parameters to {engine: sqlite}",
    ),
    "postgresql": FindingKind(),
    "virtuoso": FindingKind(),
    "namespaces": FindingKind(),
    "namespaces-refused": FindingKind(
        "the light engine of environment `os`, which the demo falls back to, needs them",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or use Docker",
    ),
    "runs-folder": FindingKind(),
    "runs-folder-unwritable": FindingKind("runs are kept there", "choose another folder: -o FOLDER"),
    "disk": FindingKind(),
    "disk-short": FindingKind(
        "a run waits while nothing can be written", "free some space, or choose another folder: -o FOLDER"
    ),
    "inodes": FindingKind(),
    "inodes-short": FindingKind("no file can be made without one", "remove files, or choose another folder: -o FOLDER"),
    "memory": FindingKind(),
    "memory-short": FindingKind(
        "processes get killed where memory runs out", "close other programs, or lower capacities"
    ),
    "descriptors": FindingKind(),
    "descriptors-few": FindingKind(
        "each trial under way takes some", "ulimit -n 8192, in the shell that starts the run"
    ),
    # the store
    "store": FindingKind(),
    "store-unreachable": FindingKind("nothing can be recorded", "check the URL, and that the server runs"),
    "store-rights": FindingKind(
        "a run makes tables and writes rows", "grant the account CREATE, SELECT, INSERT, UPDATE and DELETE there"
    ),
    "store-schema": FindingKind(
        "its runs can't be read or resumed by this version",
        "use the version of Proctor that wrote them, or another database",
    ),
    # the plan
    "plan": FindingKind(),
    "plan-broken": FindingKind("it can't be run", "correct the line that is named"),
    "key": FindingKind(),
    "key-unset": FindingKind(
        "requests go without a key, which most endpoints refuse", "set the variable, or add it to .env"
    ),
    "key-broken": FindingKind("no request can be sent with it", "copy it again"),
    # agents
    "agent": FindingKind(),
    "agent-key": FindingKind(_AGENT, "set the variable to a key of this endpoint that may use the model"),
    "agent-model": FindingKind(_AGENT, "correct `model`"),
    "agent-url": FindingKind(_AGENT, "correct `base_url`: up to and with /v1, without /chat/completions"),
    "agent-unreachable": FindingKind(_AGENT, "start the endpoint, or correct `base_url`"),
    "agent-silent": FindingKind(
        "trials wait for each answer, up to the endpoint's `deadline_s`",
        "look at the endpoint; where it is only slow, ask again with --patience 60",
    ),
    "agent-quota": FindingKind(_AGENT, "add credit to the account, or use another key"),
    "agent-throttled": FindingKind(
        "it is busy already; a run goes slowly and asks again", "lower `concurrency`, or wait"
    ),
    "agent-tls": FindingKind(_AGENT, "correct http or https in `base_url`, or the endpoint's certificate"),
    "agent-failing": FindingKind("trials are tried again and may stay unscored", "look at the endpoint's own log"),
    "agent-refuses": FindingKind("every request of a run would be refused alike", "correct `sampling` or `model`"),
    "agent-reply": FindingKind("no answer can be read", "correct `base_url`: it leads to something else"),
    # task servers
    "controller": FindingKind(),
    "controller-unreachable": FindingKind("no session can be started", "start it, or correct `controller`"),
    "controller-tls": FindingKind("it is not talked to", "name its authority (`tls.ca`), or correct http or https"),
    "controller-other": FindingKind("no session can be started", "correct `controller`: something else answers there"),
    "controller-token": FindingKind(
        "every request is refused", "set the variable to the token that the controller has"
    ),
    "controller-not-ready": FindingKind("sessions are refused until it is", "wait; the reason is its own"),
    "task": FindingKind(),
    "task-unknown": FindingKind(
        "its trials would be left unscored", "proctor worker --tasks FILE --controller URL, with this task in FILE"
    ),
    "task-waiting": FindingKind("none of its sessions can start", "mend what the worker says"),
    "task-workers-differ": FindingKind(
        "no new run can tell which of them to play; a run under way is served by those that are as it began",
        "start the workers that are named first with the data, parameters and version of the others",
    ),
    "task-no-capacity": FindingKind(
        "none of its sessions can start", "give the task a `capacity` in its worker's task file"
    ),
    "task-full": FindingKind("its trials wait for others' sessions to end", "start another worker, or wait"),
    "task-untrusted": FindingKind(
        "a model could break out", "use the environment's full engine (for os: parameters: {engine: docker})"
    ),
    "task-empty": FindingKind("there is nothing to play", "correct `data`"),
    "worker": FindingKind(),
    "worker-relayed": FindingKind(
        "its turns go through the controller, which costs a hop each",
        "start it with --advertise and a URL that this machine reaches",
    ),
    "version": FindingKind(),
    "version-differs": FindingKind(
        "prompts and scores may differ, and what one part sends another may refuse",
        "install the same version everywhere: pip install proctor==VERSION, and restart the part",
    ),
    "clock": FindingKind(),
    "clock-skew": FindingKind(
        "leases don't mind, but times in logs and traces don't fit together, and certificates may seem invalid",
        "synchronise the clocks: timedatectl set-ntp true",
    ),
    # what tasks stand on
    "environment": FindingKind(),
    "environment-missing": FindingKind("the task can't be played", "pip install what is named"),
    "environment-fault": FindingKind("none of its sessions could start", "mend what is named"),
    "environment-late": FindingKind(
        "the start of the run waits for it, up to limits.patience_s", "ask again with --patience 60"
    ),
    "data": FindingKind(),
    "data-broken": FindingKind("the task can't be played", "correct `data`, or the file at the place that is named"),
    "data-differs": FindingKind(
        "built-in agents would play other samples than the servers", "give this plan and the workers the same data"
    ),
    "policy-missing": FindingKind(
        "the agent can't play the task, so the run is refused",
        "list the pairs to play without this one under `assignments`, or give the environment the method",
    ),
    "comparable": FindingKind(),
    "not-comparable": FindingKind("its scores may not stand beside published ones", "see docs/environments"),
    # the run to be resumed
    "run": FindingKind(),
    "run-plan-changed": FindingKind("it would not be resumed", "undo the change, or start a new run"),
    "run-data-changed": FindingKind(
        "it would not be resumed", "restore data, prompts and settings, or start a new run"
    ),
    "run-damaged": FindingKind(
        "what is missing would be paid for again, or be missing in its report",
        "restore its store from a copy, or start a new run; `proctor resume` says whether it can go on without",
    ),
    "run-unreadable": FindingKind("it can't be resumed", "name another run, or start a new one"),
    # the doctor itself
    "check-failed": FindingKind("what it was to find out is not known", "please report this, with the line above"),
    "check-late": FindingKind("what it was to find out is not known", "ask again with --patience 60"),
}
