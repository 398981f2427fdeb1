"""Checks lines of JSON against the schemas named like their files and prints the findings as JSON.

Also reports fields that a schema does not describe: objects are checked again with a schema that allows no others."""

import json
import sys
from pathlib import Path

import jsonschema


def closed(schema):
    """Returns the schema with all fields forbidden that it does not describe."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: value if key in ("const", "enum", "default") else closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema and "oneOf" not in schema:
        schema.setdefault("unevaluatedProperties", False)
    return schema


def check(schema, lines):
    validator = jsonschema.Draft202012Validator(schema)
    return [[error.message[:300] for error in validator.iter_errors(line)] for line in lines]


found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    schema = json.loads(Path(sys.argv[2], f"{path.name}.schema.json").read_text())
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    wrong = check(schema, lines)
    # The fields of a variant come in addition to those of the whole schema. So other fields are forbidden for the whole,
    # and separately in its definitions.
    outer = {**schema}
    parts = {key: outer.pop(key) for key in ("$defs",) if key in outer}
    strict = {**outer, "unevaluatedProperties": False, "$defs": closed(parts.get("$defs", {}))}
    found[path.name] = {
        "valid": sum(not errors for errors in wrong),
        "wrong": [errors for errors in wrong if errors][:3],
        "unknown": [errors for errors in check(strict, lines) if errors][:3],
    }
print(json.dumps(found))
