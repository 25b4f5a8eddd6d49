#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One of four ranks dies, in mid-loop or within create: every survivor must be told within a second, by name.
# DEATH_LATE_MS allows more, where ranks take turns on a GPU.
# usage: death_test.sh SURVIVORS MODE COUNT LAUNCHER...
survivors=$1 mode=$2 count=$3 late_limit_ms=${DEATH_LATE_MS:-1000}
shift 3
if ! "$@" --version >/dev/null 2>&1; then exit 77; fi

# Recovery: the launcher must not kill the survivors, or a hang would not show.
output=$(timeout 60 "$@" --mca orte_enable_recovery 1 "$survivors" "$mode" "$count" 2>/dev/null)
code=$?
echo "$output"
if [ $code -eq 124 ]; then
  echo "FAILED: the job hangs"
  exit 1
fi

wants=('status "peer lost" culprit 2 ' 'rank 2')
if [ "$mode" != create ]; then wants+=('again "failed"' 'close "ok"'); fi
failures=0
for rank in 0 1 3; do
  line=$(grep "^survivor $rank " <<<"$output")
  if [ -z "$line" ]; then
    echo "FAILED: rank $rank did not report"
    failures=1
    continue
  fi
  read -r _ _ _ late_ms _ <<<"$line"
  if [ "$late_ms" -gt "$late_limit_ms" ] || [ "$late_ms" -lt 0 ]; then
    echo "FAILED: rank $rank was told after $late_ms ms"
    failures=1
  fi
  for want in "${wants[@]}"; do
    if [[ $line != *"$want"* ]]; then
      echo "FAILED: rank $rank does not say: $want"
      failures=1
    fi
  done
done
exit $failures
