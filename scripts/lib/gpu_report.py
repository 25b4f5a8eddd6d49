#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes FOLDER/report.md and FOLDER/report.json from FOLDER/steps.tsv, and prints the last line.

usage: gpu_report.py FOLDER KEY=VALUE...   (what was found out about the machine and the run)
Ends with 1 when a step failed.
"""

import csv
import json
import pathlib
import sys


def read_steps(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            dict(group=group, name=name, result=result, seconds=float(seconds), note=note)
            for group, name, result, seconds, note in rows
        ]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell(text) for text in line) + " |" for line in lines]


def markdown(facts, steps, summary):
    failed = [step for step in steps if step["result"] == "failed"]
    lines = ["# GPU test report", "", summary, ""]
    lines += table(["what", "value"], facts.items())
    lines += ["", "## Failed", ""] if failed else []
    lines += [f"- `{step['name']}`: {step['note']}" for step in failed]
    for group in dict.fromkeys(step["group"] for step in steps):
        rows = [
            (step["name"], step["result"], f"{step['seconds']:.1f}", step["note"])
            for step in steps
            if step["group"] == group
        ]
        lines += ["", f"## {group}", "", *table(["step", "result", "seconds", "note"], rows)]
    return "\n".join(lines) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    facts = dict(pair.split("=", 1) for pair in sys.argv[2:])
    steps = read_steps(folder / "steps.tsv")
    count = {
        result: sum(step["result"] == result for step in steps)
        for result in ("passed", "failed", "skipped")
    }
    summary = f"{count['passed']} passed, {count['failed']} failed"
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    (folder / "report.md").write_text(markdown(facts, steps, summary + skipped), encoding="utf-8")
    report = {"facts": facts, "count": count, "steps": steps}
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if count["skipped"]:
        print(f"# {count['skipped']} skipped, see {folder / 'report.md'}")
    print(summary)
    return 1 if count["failed"] or not steps else 0


if __name__ == "__main__":
    sys.exit(main())
