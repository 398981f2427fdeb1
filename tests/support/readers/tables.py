"""Reads exported tables with pandas, DuckDB and datasets and prints the findings as JSON."""

import json
import sys
from pathlib import Path

import datasets
import jsonschema
import duckdb
import pandas

datasets.disable_progress_bars()
folder, schemas = Path(sys.argv[1]), Path(sys.argv[2])
found = {}
for name in ["attempts", "values"]:
    parquet = pandas.read_parquet(folder / f"{name}.parquet")
    csv = pandas.read_csv(folder / f"{name}.csv", keep_default_na=False)
    lines = datasets.load_dataset(
        "json", data_files=str(folder / f"{name}.jsonl"), split="train", cache_dir=str(folder / "cache")
    )
    schema = json.loads((schemas / f"{name}.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    valid = [validator.is_valid(json.loads(line)) for line in open(folder / f"{name}.jsonl")]
    rows = pandas.read_json(folder / f"{name}.jsonl", lines=True)
    duck = duckdb.connect()
    described = duck.sql(f"describe select * from '{folder}/{name}.parquet'").fetchall()
    found[name] = {
        "parquet": len(parquet),
        "csv": len(csv),
        "datasets": len(lines),
        "valid": sum(valid),
        "duckdb": duck.sql(f"select count(*) from '{folder}/{name}.parquet'").fetchall()[0][0],
        "passed": duck.sql(f"select count(*) from '{folder}/{name}.parquet' where pass").fetchall()[0][0],
        "passed_lines": int(rows["pass"].sum()),
        "same_columns": list(parquet.columns) == list(csv.columns) == list(lines.column_names) == list(rows.columns),
        "types": {row[0]: row[1] for row in described},
        "nulls": {column: int(parquet[column].isna().sum()) for column in parquet.columns},
    }
    if name == "attempts":
        found[name]["answers"] = list(parquet["answer"].dropna()) == list(lines.to_pandas()["answer"].dropna())
        found[name]["answers"] &= list(rows["answer"].dropna()) == list(parquet["answer"].dropna())
        found[name]["started"] = [str(time) for time in parquet["started"].dt.tz_convert("UTC")] == [
            str(time.floor("ms")) for time in pandas.to_datetime(rows["started"], utc=True)
        ]
    else:
        both = parquet.dropna(subset=["gold", "got"])
        found[name]["errors"] = bool(
            (((both["got"] - both["gold"]).abs() / both["gold"].abs() - both["error"]).abs() < 1e-9).all()
        )
print(json.dumps(found))
