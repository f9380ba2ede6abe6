"""The knowledge graph environment: seven tools over a Freebase-style graph (arXiv 2308.03688, Appendix D)."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from environments.knowledge_graph import dataset, policies, prompt
from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.endpoint import EndpointGraph
from environments.knowledge_graph.functions import toolset
from environments.knowledge_graph.graphs import MISSING, EmbeddedGraph, Graph, check_graph
from environments.knowledge_graph.ontology import FILES, Ontology, load_ontology
from environments.knowledge_graph.prompt import PROMPT, GraphDialogue
from environments.knowledge_graph.reply import GraphAction, read, shorten, shown
from environments.knowledge_graph.scoring import summarize
from environments.knowledge_graph.session import GraphSession
from environments.knowledge_graph.tools import Profile, ToolRules
from proctor.environment import Agent, Environment, EnvironmentFault, Policy
from proctor.published import AGENTBENCH_SAMPLING, Opening, lowered, other_records, records_hash
from proctor.tools import OWN_FUNCTIONS, CallReader, Protocol, ReplyReader, TextReader, in_tools, parsed_action
from proctor.types import Action, Finish, Message, ParsedAction, Summary

SAMPLES = Path(__file__).with_name("samples")
SHIPPED_GRAPH = "urn:proctor:isles"
PER_SAMPLE = "urn:sample:{sample}"
FREEBASE = "freebase"
USUAL_ROWS = 10_000
PUBLISHED = {
    "data/knowledgegraph/dev.json": "2b59a24c649c6c311133da2aa42301508179c61419d4eb6556ca0f261df3815c",
    "data/knowledgegraph/std.json": "58629ae44c245f0e898f4e7761fde8113ee8b3c8c66f86bfca0da614ff9b24f6",
}
"""The files of AgentBench v0.2, by the hash of their records."""
PUBLISHED_ONTOLOGY = "b2e8bc3933d0aac8bd245661755c2557c858da55e720b13927e0f38105ca457c"
"""The hash of v0.2's ontology, as `Ontology.record` has it."""
_REVISIONS: Mapping[Profile, str] = {"compat": "3", "strict": "4"}
"""A profile's is to be changed with any change of behaviour that shapes a trial."""
_URL = r"^https?://[^\s@?#]+$"
_IRI = r'^[^\s<>"\\^`|]*$'


class KnowledgeGraph(Environment):
    """Questions over a Freebase-style graph, answered with seven tools."""

    data: Path | None = None
    """A published data file; None for the samples shipped with Proctor, with their own graph and ontology."""
    ontology: Path | None = None
    """The folder with vocab.json, fb_roles, fb_types and reverse_properties; None for `ontology` beside the data."""
    graph: Path | None = None
    """N-Quads, held in memory, or the folder of a pyoxigraph store."""
    endpoint: str | None = Field(default=None, pattern=_URL)
    """The URL of a SPARQL 1.1 endpoint, in place of `graph`."""
    named_graph: str | None = Field(default=None, pattern=_IRI)
    """The named graph of a sample; `{sample}` is replaced by its id, an empty text means the default graph.

    None: urn:sample:{sample} in a file, the default graph at an endpoint.
    """
    world: str | None = Field(default=None, min_length=1)
    """The graph's name, recorded with every score: `freebase` or another; None means `synthetic-mini` for a file."""
    distractors: int = Field(default=0, ge=0, le=100)
    """Wrong relations added for each type in each named graph of a file."""
    profile: Profile = "strict"
    """The tools' checks: as in the published code (`compat`), or corrected (`strict`)."""
    query_limit_s: float = Field(default=30.0, gt=0, le=3600)
    """A query that takes longer is a fault."""
    max_rows: int = Field(default=USUAL_ROWS, ge=1, le=1_000_000)
    """The most rows read from a result; counts are exact all the same."""
    max_relations_shown: int | None = Field(default=None, ge=1)
    """Relations and attributes that an observation shows; those not shown may still be used."""
    prompts: Path | None = None
    """A file with another instruction and example, such as AgentBench's; None for our own. Python is read, not run."""
    protocol: Protocol = "text"
    """How the agent acts: by what it writes (`text`), or by function calls (`tools`)."""

    max_turns: ClassVar[int | None] = prompt.ROUNDS
    bad_replies: ClassVar[str | None] = "n_bad_format"
    capacity: ClassVar[int] = 16

    _graph: Graph | None = PrivateAttr(default=None)
    _rules: ToolRules | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "KnowledgeGraph":
        if self.graph and self.endpoint:
            raise ValueError("graph and endpoint: both are given; remove one of the two")
        if self.data and not (self.graph or self.endpoint):
            raise ValueError("graph: questions need a graph; give `graph` (a file) or `endpoint` (a URL)")
        if not self.data and (self.graph or self.endpoint or self.ontology or self.named_graph):
            raise ValueError("data: the shipped samples go with their own graph and ontology; give `data` as well")
        if self.endpoint and not self.world:
            raise ValueError("world: scores must name their graph; set world: freebase, or your graph's name")
        if self.distractors and (self.endpoint or (self.graph and self.graph.is_dir())):
            raise ValueError("distractors: they can only be added to a file of N-Quads; remove this field")
        if self.prompts and self.protocol == "tools":
            raise ValueError("prompts: it is the published prompt of protocol text; remove it, or set protocol: text")
        return self

    def samples(self) -> Sequence[str]:
        samples, _ = tuple(self._entries), self._before  # a broken file is refused now, before anything is played
        if self.data is not None:
            _ = self._loaded_ontology
        if self.graph is not None:
            check_graph(self.graph)
        return samples

    def digest(self) -> str:
        state = hashlib.blake2b(digest_size=16)
        omitted = {"data", "ontology", "graph", "endpoint", "prompts"}
        if self.protocol == "text":
            omitted.add("protocol")
        fields = self.model_dump_json(exclude=omitted)
        for part in (_REVISIONS[self.profile], fields, self._world, *self._prompt_texts()):
            state.update(part.encode() + b"\0")
        for path in self._files():
            state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return state.hexdigest()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        entry = self._entry(sample)
        if self._graph is None or self._rules is None:
            raise RuntimeError("the knowledge graph environment plays only inside its lifespan")
        session = GraphSession(entry, self._graph, self._graph_name(entry), self._rules, self._dialogue(entry))
        finish = await session.play(agent)
        return finish.model_copy(update={"detail": finish.detail | {"graph": self._world}})

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._reader(()), action, partial(shown, protocol=self.protocol, profile=self.profile))

    def category(self, sample: str) -> str:
        """How many tool calls the gold solution has."""
        return f"{len(self._entry(sample).actions)} calls"

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.reference(self._entry(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.naive(self._entry(sample)))

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.chance(self._entry(sample), seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        in_file = len(self._entries) if self.profile == "compat" else None
        return summarize(finishes, self._world, in_file, own_words=self.prompts is None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            loaded = await asyncio.to_thread(lambda: self._loaded_ontology)
        except ValueError as error:
            raise EnvironmentFault(str(error)) from error
        graph = self._new_graph(loaded)
        self._rules = ToolRules(self.profile, loaded, self.max_rows, self.max_relations_shown)
        async with graph.lifespan():
            self._graph = graph
            try:
                yield
            finally:
                self._graph = None

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        if find_spec("pyoxigraph") is None:
            raise EnvironmentFault(MISSING)
        return {}

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return OWN_FUNCTIONS
        if self.data is None:
            return "the samples and their graph are Proctor's own, not the published ones"
        if self.world != FREEBASE:
            return f"the graph is {self._world}, not Freebase"
        if self.profile != "compat":
            return f"the profile {self.profile!r} corrects checks of the published code; use compat"
        if self.max_relations_shown is not None:
            return "max_relations_shown hides relations that the published code shows"
        if self.distractors:
            return "distractors are relations that the published graph lacks; leave the field out"
        other = lowered(self, "max_rows", "query_limit_s") or PROMPT.differs(self.prompts, Opening(self._before))
        if other is None and self._file is not None and self._file.is_file():
            return f"{self._file}: a file of N-Quads is not all of Freebase; give a store, or an `endpoint`"
        other = other or other_records(self.data, dataset.records(self.data), PUBLISHED)
        if other is None and self._ontology.is_dir():  # without one, there are no samples
            other = self._other_ontology()
        return other

    def _other_ontology(self) -> str | None:
        if records_hash([self._loaded_ontology.record()]) == PUBLISHED_ONTOLOGY:
            return None
        return f"{self._ontology}: other names or relations than AgentBench v0.2's ontology; give that unchanged"

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    @cached_property
    def _before(self) -> tuple[Message, ...]:
        return prompt.BEFORE if self.prompts is None else PROMPT.read(self.prompts).messages

    def _dialogue(self, entry: QuestionEntry) -> GraphDialogue:
        reader = self._reader(tuple(entry.entities))
        if self.protocol == "tools":
            before, strict = prompt.before_calls(self.profile), self.profile == "strict"
            return GraphDialogue(before, reader, kept=str, one_answer=not strict)
        return GraphDialogue(self._before, reader, kept=shorten, one_answer=False)

    def _reader(self, entities: Sequence[str]) -> ReplyReader[GraphAction]:
        """How the replies of one session are read, in which the question has these entities."""
        if self.protocol == "tools":
            return CallReader(toolset(self.profile), strict=self.profile == "strict")
        return TextReader(partial(self._read, entities))

    def _read(self, entities: Sequence[str], reply: str) -> GraphAction:
        return read(shorten(reply), entities, lenient=self.profile == "strict")

    def _in_protocol(self, sample: str, policy: Policy) -> Policy:
        if self.protocol == "text":
            return policy
        entities = tuple(self._entry(sample).entities)
        return in_tools(policy, partial(self._read, entities), policies.spelled, toolset(self.profile))

    def _prompt_texts(self) -> Iterator[str]:
        """The texts of the prompt that enter the digest: all but our own confirmation."""
        if self.protocol == "tools":
            for part in (*prompt.before_calls(self.profile), *toolset(self.profile).tools()):
                yield part.model_dump_json()
            return
        for message in self._before:
            if message.content != prompt.CONFIRMATION:
                yield message.content

    @cached_property
    def _entries(self) -> Mapping[str, QuestionEntry]:
        return dataset.load(self.data or SAMPLES / "questions.json")

    def _entry(self, sample: str) -> QuestionEntry:
        if sample not in self._entries:
            raise ValueError(f"{self.data or 'the shipped samples'}: no sample {sample!r}; ids are the field qid")
        return self._entries[sample]

    @cached_property
    def _loaded_ontology(self) -> Ontology:
        return load_ontology(self._ontology)

    @property
    def _ontology(self) -> Path:
        return self.ontology or (self.data.parent if self.data else SAMPLES) / "ontology"

    @property
    def _file(self) -> Path | None:
        return self.graph or (None if self.endpoint else SAMPLES / "graph.nq")

    @property
    def _world(self) -> str:
        """The name of the graph, with the level of its distractors."""
        name = self.world or ("synthetic-mini" if self.data else "proctor-isles")
        return f"{name}, {self.distractors} distractors" if self.distractors else name

    def _graph_name(self, entry: QuestionEntry) -> str | None:
        name = self.named_graph
        if name is None:
            name = SHIPPED_GRAPH if not self.data else PER_SAMPLE if self.graph else ""
        return name.replace("{sample}", entry.id) or None

    def _new_graph(self, loaded: Ontology) -> Graph:
        if self._file is None:
            assert self.endpoint is not None
            return EndpointGraph(self.endpoint, self.query_limit_s)
        return EmbeddedGraph(self._file, self.query_limit_s, self.distractors, loaded)

    def _files(self) -> Iterator[Path]:
        """The files whose content enters the digest. The folder of a store, perhaps huge, enters by `world` alone."""
        yield self.data or SAMPLES / "questions.json"
        for name in FILES:
            yield self._ontology / name
        if self._file and self._file.is_file():
            yield self._file
