#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: external_checkpoint.sh BUILD NP suspended|active [car_checkpoint options]
# Ranks that wait are checkpointed from outside by car_checkpoint: suspended ones must come back and
# find everything right, active ones must be refused and go on as if nothing had been.
set -uo pipefail
build=$1 np=$2 mode=$3
shift 3
folder=$(mktemp -d)
launcher=
cleanup() {
  touch "$folder/go"
  [ -z "$launcher" ] || kill "$launcher" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

export LIBRUN_JOB=external_checkpoint.$$
mpirun --oversubscribe --timeout 100 -np "$np" "$build/tests/cli/waiting_ranks" "$mode" "$folder" &
launcher=$!
for ((rank = 0; rank < np; rank++)); do
  until [ -f "$folder/ready.$rank" ]; do
    kill -0 "$launcher" 2>/dev/null || {
      echo "the ranks ended before they were ready"
      exit 1
    }
    sleep 0.1
  done
done

tool=$build/bin/car_checkpoint
"$tool" --list --job "$LIBRUN_JOB"
expected=0
[ "$mode" = suspended ] || expected=1
"$tool" --job "$LIBRUN_JOB" --timeout 30 --hold 1 --json "$folder/out.json" "$@"
code=$?
cat "$folder/out.json"
touch "$folder/go"
wait "$launcher"
ranks_code=$?
launcher=
[ "$code" -eq "$expected" ] || {
  echo "car_checkpoint ended with $code, expected $expected"
  # 3 where the driver cannot: the step has not been run.
  [ "$code" -eq 3 ] && exit 77
  exit 1
}
[ "$ranks_code" -eq 0 ] || {
  echo "the ranks ended with $ranks_code"
  exit 1
}
[ "$mode" = suspended ] || exit 0
python3 - "$folder/out.json" <<'EOT'
import json, sys

memory = json.load(open(sys.argv[1]))["gpu_memory"]
used = {when: sum(m["used_bytes"] for m in memory if m["when"] == when) >> 20
        for when in ("before", "held", "after")}
print("GPU memory in use, MiB:", used if memory else "n/a")
# The driver keeps 3 MiB for itself; the smallest process takes hundreds.
sys.exit(1 if memory and (used["held"] > 16 or used["before"] <= 16) else 0)
EOT
