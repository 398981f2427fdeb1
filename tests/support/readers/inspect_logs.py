"""Reads Inspect logs with inspect_ai and prints the findings as JSON."""

import json
import math
import sys
from pathlib import Path

from inspect_ai.analysis import evals_df, events_df, messages_df, samples_df
from inspect_ai.log import (
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)

found = {}
for info in list_eval_logs(sys.argv[1]):
    log = read_eval_log(info)
    summaries = read_eval_log_sample_summaries(info)
    first = summaries[0]
    sample = read_eval_log_sample(info, id=first.id, epoch=first.epoch, resolve_attachments=True)
    models = [event for event in sample.events if event.event == "model"]
    shown = {message.id for event in models for message in event.input}
    messages = len(messages_df(info.name, quiet=True))
    samples = samples_df(info.name, quiet=True)
    found[log.eval.solver] = {
        "file": Path(info.name).name,
        "status": log.status,
        "version": log.version,
        "model": log.eval.model,
        "samples": len(log.samples),
        "epochs": log.eval.config.epochs,
        "summaries": len(summaries),
        "rows": len(samples),
        "evals": len(evals_df(info.name, quiet=True)),
        "events": len(events_df(info.name, quiet=True)),
        "messages": messages,
        "scores": {score.name: score.metrics["accuracy"].value for score in log.results.scores},
        "columns": sorted(name for name in samples.columns if name.startswith("score_")),
        "first": {
            "id": sample.id,
            "messages": [message.role for message in sample.messages],
            "model_events": len(models),
            "inputs": [len(event.input) for event in models],
            "known": shown <= {message.id for message in sample.messages},
            "tools": [event.function for event in sample.events if event.event == "tool"],
            "tokens": sum(usage.total_tokens for usage in sample.model_usage.values()),
            "event_tokens": sum(event.output.usage.total_tokens for event in models),
            "cost": math.fsum(usage.total_cost for usage in sample.model_usage.values()),
            "completion": sample.output.completion,
            "error": sample.error and sample.error.message,
            "scores": {name: score.value for name, score in (sample.scores or {}).items()},
        },
        "errors": sum(1 for one in log.samples if one.error),
        "limits": sorted({one.limit.type for one in log.samples if one.limit}),
    }
print(json.dumps(found))
