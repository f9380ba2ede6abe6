"""Validates a folder of records by Every Eval Ever's own schemas and checks; prints a JSON line for each file."""

import json
import sys
from pathlib import Path

import jsonschema
from every_eval_ever.schema import get_schema_version, schema_json
from every_eval_ever.validator.validation_core import validate_file

folder = Path(sys.argv[1])
files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.json*"))}
for name, path in files.items():
    rows = path.suffix == ".jsonl"
    schema = schema_json("instance_level_eval.schema.json" if rows else "eval.schema.json")
    validator = jsonschema.validators.validator_for(schema)(schema)
    text = path.read_text(encoding="utf-8")
    values = [json.loads(line) for line in (text.splitlines() if rows else [text])]
    checked = validate_file(
        path,
        repo_path=name,
        available_files=frozenset(files),
        read_repo_file=lambda other: files[other].read_text(encoding="utf-8"),
        run_semantic_checks=True,
    )
    errors = [error.message for value in values for error in validator.iter_errors(value)]
    errors += [each["msg"] for each in checked.errors]
    warnings = [each["msg"] for each in checked.warnings]
    print(
        json.dumps(
            {"path": name, "version": get_schema_version(), "values": values, "errors": errors, "warnings": warnings}
        )
    )
