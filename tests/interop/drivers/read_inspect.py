"""Reads the logs of a folder as Inspect does, and prints a JSON line for each."""

import json
import sys

from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

folder = sys.argv[1]
listed = list_eval_logs(folder)
for info in sorted(listed, key=lambda each: each.name):
    whole, head = read_eval_log(info.name), read_eval_log(info.name, header_only=True)
    summaries = read_eval_log_sample_summaries(info.name)
    first = read_eval_log_sample(info.name, id=whole.samples[0].id, epoch=whole.samples[0].epoch)
    assert first == whole.samples[0]
    assert (head.status, head.results, head.eval) == (whole.status, whole.results, whole.eval)
    (score,) = whole.results.scores
    told = {
        "task": whole.eval.task,
        "solver": whole.eval.solver,
        "metadata": whole.eval.metadata,
        "status": whole.status,
        "metrics": {name: metric.value for name, metric in score.metrics.items()},
        "scored": [score.scored_samples, score.unscored_samples, whole.results.total_samples],
        "summaries": [
            {
                "key": [each.id, each.epoch],
                "score": each.scores["proctor"].value if each.scores else None,
                "error": each.error,
                "limit": each.limit,
                "messages": each.message_count,
                "completed": each.completed,
            }
            for each in summaries
        ],
        "samples": [
            {
                "key": [each.id, each.epoch],
                "trial": each.metadata["trial"],
                "sample": each.metadata["sample"],
                "score": each.scores["proctor"].value if each.scores else None,
                "error": each.error.message if each.error else None,
                "limit": each.limit.type if each.limit else None,
                "texts": [message.text for message in each.messages],
                "calls": [
                    [call.id, call.function, call.arguments, call.parse_error]
                    for message in each.messages
                    for call in getattr(message, "tool_calls", None) or []
                ],
                "conversations": list(each.metadata.get("conversations", {})),
                "events": [event.event for event in each.events],
            }
            for each in whole.samples
        ],
    }
    print(json.dumps(told))
