"""Errata: replaced fields of samples, each with its reason."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from environments.operating_system.dataset import DataError, Dataset, Raw, SampleRecord, record

SHIPPED = Path(__file__).with_name("overlays")
_CHECKS_ONLY = {"evaluation", "example", "reason"}
_FIELDS = _CHECKS_ONLY | {"description", "create", "start", "labels"}


class Errata:
    """The samples as corrected by an overlay."""

    def __init__(self, dataset: Dataset, overlay: Path | None) -> None:
        self._corrected: dict[str, SampleRecord] = {}
        self._replay: set[str] = set()
        for sample, fields in self._entries(dataset, overlay).items():
            raw, scripts = dataset.raw[sample]
            replaced: Raw = {**raw, **{field: value for field, value in fields.items() if field != "reason"}}
            self._corrected[sample] = record(sample, replaced, scripts, [])
            if not set(fields) <= _CHECKS_ONLY:
                self._replay.add(sample)

    def corrected(self, published: SampleRecord) -> SampleRecord:
        """The corrected sample; the published one if the overlay does not name it."""
        return self._corrected.get(published.id, published)

    def same_play(self, published: SampleRecord) -> bool:
        """Whether only checks differ, so that one session can be scored with both."""
        return published.id not in self._replay

    @staticmethod
    def _entries(dataset: Dataset, overlay: Path | None) -> Mapping[str, Raw]:
        """The entries for these samples. Raises DataError if the user's own overlay names an unknown sample."""
        if overlay is not None:
            entries = _read(overlay)
            unknown = sorted(set(entries) - set(dataset.records))
            if unknown:
                raise DataError(f"{overlay}: {unknown[0]}: no such sample in the data; correct the id or remove it")
            return entries
        found: dict[str, Raw] = {}
        for file in sorted(SHIPPED.glob("*.json")):
            found |= {sample: fields for sample, fields in _read(file).items() if sample in dataset.records}
        return found


def _read(file: Path) -> dict[str, Raw]:
    try:
        entries: JsonValue = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: not readable as JSON: {error}; correct or replace the file") from error
    if not isinstance(entries, dict):
        raise DataError(f"{file}: not an object; write an object from sample id to replaced fields")
    return {sample: _entry(file, sample, fields) for sample, fields in entries.items()}


def _entry(file: Path, sample: str, fields: JsonValue) -> Raw:
    if not isinstance(fields, dict) or not isinstance(fields.get("reason"), str):
        raise DataError(f"{file}: {sample}: reason: missing; write a text on what is wrong with the published sample")
    unknown = sorted(set(fields) - _FIELDS)
    if unknown:
        raise DataError(f"{file}: {sample}: {unknown[0]}: unknown field; use {', '.join(sorted(_FIELDS))}")
    return fields
