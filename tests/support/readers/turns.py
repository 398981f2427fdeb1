"""Reads an exported table of turns with pandas and DuckDB, compares it with the JSON lines, and prints the findings as
JSON."""

import json
import sys
from pathlib import Path

import duckdb
import jsonschema
import pandas

parquet, lines, schemas = map(Path, sys.argv[1:])
rows = [json.loads(line) for line in lines.open()]
validator = jsonschema.Draft202012Validator(json.loads((schemas / "turns.schema.json").read_text()))
lists = ["prompt_ids", "prompt_written", "completion_ids", "logprobs"]
frame = pandas.read_parquet(parquet)
duck = duckdb.connect()
ids = duck.sql(f"select len(prompt_ids) + len(completion_ids) from '{parquet}' where step = 2").fetchall()
same = all([list(value) for value in frame[name]] == [row[name] for row in rows] for name in lists)
same &= list(frame.columns) == list(rows[0])
found = {"rows": len(frame), "same": same, "valid": sum(map(validator.is_valid, rows)), "ids": ids[0][0]}
print(json.dumps(found))
