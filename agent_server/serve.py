"""Builds agents from their configuration, and serves them until a signal stops the server."""

from collections.abc import Callable, Mapping

from agent_server.agents.base import ServedAgent
from agent_server.agents.limits import Limited
from agent_server.agents.policies import ServedPolicy, TaskPolicies
from agent_server.app import build_app
from agent_server.config import AgentConfig, AgentServerConfig, FunctionConfig, PolicyConfig, RecordedConfig
from proctor import event_loop
from proctor.config.yaml import FileError
from proctor.digest import digest_of
from proctor.http.client import HttpClient, http_client
from proctor.http.server import listen, url_of
from proctor.http.serving import serve_until_signal, uvicorn_config
from proctor.llm.model import ChatModel
from proctor.observability.metrics import ProcessMetrics

GRACE_S = 30
KEEP_ALIVE_S = 65
"""Longer than our clients keep an idle connection, so that the client closes it first."""


def serve(
    config: AgentServerConfig,
    on_ready: Callable[[str], None] = lambda base_url: None,
    *,
    stop_with_stdin: bool = False,
) -> None:
    """Serve until SIGTERM, SIGINT or the end of standard input; requests in progress then have 30 s, or end at once.

    They do at a second signal, and where standard input has ended. `on_ready` gets the base URL (up to and including
    /v1) once requests are accepted. Raises ValueError where the configuration can't be served.
    """
    access, client, metrics = config.access(), http_client(tls=config.tls), ProcessMetrics("agent-server")
    app = build_app(build_agents(config, client), access, config.max_request_bytes, metrics)
    listener = listen(config.host, config.port)

    async def run() -> None:
        settings = uvicorn_config(
            app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=GRACE_S, tls=config.tls, knows=access.knows
        )
        url = url_of(config.host, listener, config.tls.scheme) + "/v1"
        with event_loop.beside(metrics.watch()):
            async with client:
                await serve_until_signal(settings, listener, lambda: on_ready(url), stop_with_stdin=stop_with_stdin)

    event_loop.run(run())


def build_agents(config: AgentServerConfig, client: HttpClient) -> Mapping[str, ServedAgent]:
    """The agents by name; `client` is for the proxied ones.

    Raises FileError or ValueError where a task, a recording or a key can't be used.
    """
    needed = any(isinstance(agent, PolicyConfig) for agent in config.agents)
    tasks = TaskPolicies(config.tasks if needed else ())
    return {
        agent.name: Limited(
            _bare(agent, tasks, client),
            concurrency=agent.concurrency,
            context_chars=agent.context_chars,
            latency_s=agent.latency_s,
        )
        for agent in config.agents
    }


def _bare(config: AgentConfig, tasks: TaskPolicies, client: HttpClient) -> ServedAgent:
    if isinstance(config, PolicyConfig):
        return ServedPolicy(config.kind, tasks)
    if isinstance(config, RecordedConfig):
        from agent_server.agents.recorded import RecordedAgent

        return RecordedAgent(config.path, config.agent)
    if isinstance(config, FunctionConfig):
        return _function(config, client)
    from agent_server.agents.proxied import ProxiedAgent

    return ProxiedAgent(ChatModel(config.chat, client))


def _function(config: FunctionConfig, client: HttpClient) -> ServedAgent:
    from agent_server.agents.function import ServedFunction
    from agent_server.agents.proxied import ProxiedAgent
    from agent_server.agents.stateful import StatefulAgent
    from proctor.agent_function import THREADS, own_caller, own_function
    from proctor.own_files.source import source_of

    try:
        caller = own_caller(config.function, config.concurrency or THREADS, config.parameters)
    except ImportError as error:
        raise FileError(f"agents.{config.name}.function: {error}") from error
    if config.chat is None and caller.takes_model:
        raise FileError(f"agents.{config.name}.chat: missing; its function takes `model`, whose settings these are")
    if config.chat is not None and caller.takes_model is None:
        raise FileError(f"agents.{config.name}.chat: its function takes no `model`; give it that parameter")
    model = None if config.chat is None else ProxiedAgent(ChatModel(config.chat, client))
    source = source_of(own_function(config.function)).digest
    digest = digest_of([source, config.parameters, config.chat and config.chat.model])
    agent = ServedFunction(caller, model, digest)
    return StatefulAgent(agent) if caller.stateful else agent
