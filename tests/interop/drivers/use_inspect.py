"""Frames, a new score and a scan of all logs of a folder; prints what came of each. `use_inspect.py LOGS SCANS`."""

import json
import sys
from collections import Counter

from inspect_ai import score
from inspect_ai.analysis import evals_df, events_df, messages_df, samples_df
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.scorer import includes
from inspect_scout import Result, Transcript, scan, scan_results_df, scanner, transcripts_from


@scanner(messages="all", events="all")
def lengths():
    async def counted(transcript: Transcript) -> Result:
        return Result(value=len(transcript.messages))

    return counted


if __name__ == "__main__":  # the scan starts this file again, in processes of its own
    logs, scans = sys.argv[1:]
    evals, samples, messages, events = (
        made(logs, quiet=True) for made in (evals_df, samples_df, messages_df, events_df)
    )
    made = messages[messages["source"] == "generate"]
    pairs = Counter(zip(events["sample_id"], events["event"], strict=True))
    scored = [
        score(read_eval_log(each.name), includes(), model="none/none", display="none") for each in list_eval_logs(logs)
    ]
    scanned = scan([lengths()], transcripts=transcripts_from(logs), scans=scans, display="none")
    found = scan_results_df(scanned.location).scanners["lengths"] if scanned.complete else None
    told = {
        "evals": len(set(evals["task_id"])),
        "samples": dict(zip(samples["sample_id"], samples["message_count"], strict=True)),
        "answers": dict(Counter(made["sample_id"])),
        "messages": [len(messages), len(set(messages["message_id"]))],
        "events": [[*pair, count] for pair, count in pairs.items()],
        "scored": [sorted(score.name for score in each.results.scores) for each in scored],
        "scanned": {} if found is None else dict(zip(found["transcript_id"], found["value"].astype(int), strict=True)),
    }
    print(json.dumps(told, default=int))
