"""Reads os_interaction data in every form of its published format (AgentBench v0.2)."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue

from proctor.published import records_hash
from proctor.types import Value

Language = Literal["bash", "python", "c", "c++"]
Raw = dict[str, JsonValue]


class ShellScript(Value):
    """A program's source text, unchanged."""

    language: Language = "bash"
    code: str
    name: str = ""
    """Stem of the script's file, by which the published checkers are recognized; empty for code in the record."""


class AnswerMatch(Value):
    """The expected answer: exactly this text, or any text in which the regular expression is found."""

    answer: str | None = None
    regex: str | None = None
    strip: bool = True


class SampleRecord(Value):
    """One sample, scored by `match` if it has one, else by `checks`; None in `checks` means `example`."""

    id: str
    description: str
    image: str | None = None
    """The record's image; None for the configured one. `create.local` is ignored as in v0.2."""
    init: tuple[ShellScript, ...] = ()
    start: ShellScript | None = None
    match: AnswerMatch | None = None
    checks: tuple[ShellScript | None, ...] = ()
    example: ShellScript | None = None
    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["match", "check"]:
        """Which of the two scores the sample."""
        return "match" if self.match else "check"

    @property
    def wanted(self) -> str:
        """What is right, in a word or two: the answer, or the output of the example where that is checked."""
        if self.match is not None:
            return self.match.answer if self.match.answer is not None else f"a match of {self.match.regex}"
        return f"the output of: {self.example.code}" if self.example else "the checks pass"


@dataclass(frozen=True)
class Dataset:
    """The records by id, in order of file and position, and warnings about them."""

    records: dict[str, SampleRecord]
    raw: dict[str, tuple[Raw, "Scripts"]]
    warnings: tuple[str, ...]


class PublishedFiles(Value):
    """Hashes of AgentBench v0.2's files."""

    records: Mapping[str, Mapping[str, str]]
    """split -> file below its folder `data` -> the hash of the file's records"""
    scripts: Mapping[str, tuple[str, ...]]
    """SHA-256 of a script -> where it stands below the folder `scripts`"""


class DataError(ValueError):
    """The data can't be used; the message names file, record, field and fix."""


@dataclass(frozen=True)
class Scripts:
    """The folder with the script files of a split."""

    folder: Path

    def read(self, name: str, sample: str) -> str:
        """The text of a script file, unchanged. Raises DataError with sample and path."""
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise DataError(f"{sample}: file: {name!r} leaves the script folder {self.folder}; name one inside it")
        try:
            return path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"{sample}: file: script {path} can't be read: {error}; set `scripts` to the split's script folder"
            ) from error


def load(data: Path, scripts: Path | None = None, split: str | None = None) -> Dataset:
    """The samples of a file, or of all JSON files below a folder. Raises DataError.

    An id is `<split>-<file stem>-<5-digit index>`. Without a given split, it is the name of the file's folder if that
    is a number (the groups of the standard split), else the file's stem up to the first underscore.
    """
    records: dict[str, SampleRecord] = {}
    raw: dict[str, tuple[Raw, Scripts]] = {}
    warnings: list[str] = []
    for file in _files(data):
        name = split or (file.parent.name if file.parent.name.isdigit() else file.stem.split("_")[0])
        folder = Scripts(_script_folder(file, scripts, name))
        for index, item in enumerate(_items(file)):
            sample = f"{name}-{file.stem}-{index:05d}"
            if sample in records:
                raise DataError(f"{file}: record {index}: id {sample} appears twice; give the files different names")
            try:
                records[sample] = record(sample, item, folder, warnings)
            except DataError as error:
                raise DataError(f"{file}: record {index}: {error}") from error
            raw[sample] = (item, folder)
    return Dataset(records, raw, tuple(warnings))


def other_samples(held: Dataset) -> str | None:
    """Why samples are not those of a published split; None where they are."""
    files = [tuple(of) for _, of in groupby(held.raw, lambda sample: sample.rpartition("-")[0])]
    found = {records_hash(held.raw[sample][0] for sample in samples): samples for samples in files}
    for published in published_files().records.values():
        if len(files) == len(published) and found.keys() == set(published.values()):
            paths = ((path, sample) for path, digest in published.items() for sample in found[digest])
            return next(filter(None, (_other_script(held, path, sample) for path, sample in paths)), None)
    return (
        "the samples are not those of AgentBench v0.2's data/dev.json, nor of its folders data/1 to data/7; give that "
        "file, or a folder with these seven alone (no dev.json, no 6-backup.json)"
    )


@cache
def published_files() -> PublishedFiles:
    """The hashes that Proctor ships."""
    return PublishedFiles.model_validate_json(Path(__file__).with_name("published.json").read_bytes())


def record(sample: str, raw: Raw, scripts: Scripts, warnings: list[str]) -> SampleRecord:
    """One sample from its JSON object. Appends harmless errors to `warnings`; raises DataError for others."""
    create = raw.get("create")
    if create is not None and not isinstance(create, dict):
        warnings.append(f"{sample}: create: not an object, so it is ignored")
        create = None
    create = create or {}
    evaluation = raw.get("evaluation")
    if not isinstance(evaluation, dict):
        raise DataError(f"{sample}: evaluation: missing or not an object; add one with `match` or `check`")
    match = _match(sample, evaluation.get("match"))
    items = [] if match else _listed(evaluation.get("check"))
    checks = tuple(_optional(sample, "evaluation.check", item, scripts) for item in items)
    example = _optional(sample, "example", evaluation.get("example", raw.get("example")), scripts)
    if match is None and not checks:
        raise DataError(f"{sample}: evaluation: neither match nor check; add one of them")
    if None in checks and example is None:
        raise DataError(f"{sample}: evaluation.check: null means the example, which is missing; add `example`")
    return SampleRecord(
        id=sample,
        description=_text(sample, "description", raw.get("description")),
        image=_optional_text(sample, "create.image", create.get("image")),
        init=tuple(_script(sample, "create.init", item, scripts) for item in _listed(create.get("init"))),
        start=_optional(sample, "start", raw.get("start"), scripts),
        match=match,
        checks=checks,
        example=example,
        labels=_labels(sample, raw.get("labels")),
    )


def _files(data: Path) -> Sequence[Path]:
    if data.is_file():
        return [data]
    found = (path for pattern in ("*.json", "*.jsonl") for path in data.rglob(pattern))
    files = sorted(path for path in found if "scripts" not in path.relative_to(data).parts)
    if not files:
        raise DataError(f"{data}: data: no such file, nor a folder with JSON files; give the path of the data")
    return files


def _items(file: Path) -> Sequence[Raw]:
    """The records of a file: a JSON list, a single object, or JSON Lines if its name ends in .jsonl."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not readable: {error}; correct or replace the file") from error
    if file.suffix == ".jsonl":
        items = [_json(f"{file}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    else:
        whole = _json(str(file), text)
        items = whole if isinstance(whole, list) else [whole]
    if not items:
        raise DataError(f"{file}: holds no records; write a JSON list of objects, one object, or JSON Lines (.jsonl)")
    return [_object(file, index, item) for index, item in enumerate(items)]


def _json(where: str, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not readable as JSON: {error}; correct or replace the file") from error
    return value


def _object(file: Path, index: int, item: JsonValue) -> Raw:
    if not isinstance(item, dict):
        raise DataError(f"{file}: record {index}: not an object; write one sample as a JSON object")
    return item


def _script_folder(file: Path, scripts: Path | None, split: str) -> Path:
    """The split's folder below `scripts`, or `scripts` itself if it has none.

    Without `scripts`: the folder of that name nearest to the file, else the file's own folder.
    """
    root = scripts or next((up / "scripts" for up in list(file.parents)[:3] if (up / "scripts").is_dir()), file.parent)
    return root / split if (root / split).is_dir() else root


def _match(sample: str, raw: JsonValue) -> AnswerMatch | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        return AnswerMatch(answer=raw)
    if not isinstance(raw, dict) or ("answer" in raw) == ("regex" in raw):
        raise DataError(f"{sample}: evaluation.match: give a text, or an object with one of `answer` and `regex`")
    strip = raw.get("strip", True)
    try:
        re.compile(str(raw.get("regex", "")))
    except re.error as error:
        raise DataError(f"{sample}: evaluation.match.regex: {error}; correct the regular expression") from error
    if not isinstance(strip, bool):
        raise DataError(f"{sample}: evaluation.match.strip: not a truth value; write true or false")
    return AnswerMatch(
        answer=_optional_text(sample, "evaluation.match.answer", raw.get("answer")),
        regex=_optional_text(sample, "evaluation.match.regex", raw.get("regex")),
        strip=strip,
    )


def _listed(raw: JsonValue) -> list[JsonValue]:
    """The items of a list, or one that stands alone; none for null."""
    return raw if isinstance(raw, list) else [] if raw is None else [raw]


def _optional(sample: str, field: str, raw: JsonValue, scripts: Scripts) -> ShellScript | None:
    return None if raw is None else _script(sample, field, raw, scripts)


def _script(sample: str, field: str, raw: JsonValue, scripts: Scripts) -> ShellScript:
    if isinstance(raw, str):
        raw = {"code": raw}
    if not isinstance(raw, dict):
        raise DataError(f"{sample}: {field}: neither a text nor an object; give `code` or `file`")
    language = next((known for known in get_args(Language) if known == raw.get("language", "bash")), None)
    if language is None:
        raise DataError(f"{sample}: {field}.language: {raw['language']!r}; use one of {', '.join(get_args(Language))}")
    code, file = raw.get("code"), raw.get("file")
    if isinstance(code, str) and "\0" not in code:
        return ShellScript(language=language, code=code)
    if isinstance(file, str):
        return ShellScript(language=language, code=scripts.read(file, sample), name=Path(file).stem)
    raise DataError(f"{sample}: {field}: neither `code` nor `file` holds a text; give one of them")


def _labels(sample: str, raw: JsonValue) -> tuple[str, ...]:
    items = raw or []
    if not isinstance(items, list):
        raise DataError(f"{sample}: labels: not a list; write a list of texts")
    return tuple(_text(sample, "labels", item) for item in items)


def _optional_text(sample: str, field: str, raw: JsonValue) -> str | None:
    return None if raw is None else _text(sample, field, raw)


def _text(sample: str, field: str, raw: JsonValue) -> str:
    if not isinstance(raw, str) or not raw:
        raise DataError(f"{sample}: {field}: missing or not a text; give a text")
    return raw


def _other_script(held: Dataset, path: str, sample: str) -> str | None:
    """Which script of a sample, in the file at a path, is another than the published one; None where none is."""
    raw, scripts = held.raw[sample]
    split = path.partition("/")[0].removesuffix(".json")
    for name in _named(raw):
        digest = sha256(scripts.read(name, sample).encode()).hexdigest()
        if f"{split}/{name}" not in published_files().scripts.get(digest, ()):
            return f"{sample}: {scripts.folder / name} is another script than the published one; give that unchanged"
    return None


def _named(raw: JsonValue) -> Iterator[str]:
    """The names of the script files in a record."""
    if isinstance(raw, list):
        for item in raw:
            yield from _named(item)
    elif isinstance(raw, dict):
        if isinstance(file := raw.get("file"), str) and not isinstance(raw.get("code"), str):
            yield file
        for item in raw.values():
            yield from _named(item)
