#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rows of the table in which a rank dies or stops for ever, several in a job, for FAULT_SECONDS
# (0: until all rows are done) in the order of FAULT_SEED. After each job no process and no entry of
# ours in /dev/shm may stay. DEATH_LATE_MS is how late a survivor may be told.
# On a GPU a job has one row, since few ranks share one.
# usage: fault_deaths_test.sh FAULT_TABLE FAULT_DEATHS NP LAUNCHER... (all but the number of ranks)
set -u
table=$1 deaths=$2 np=$3 rows_per_job=$(($3 < 24 ? 24 / $3 : 1))
shift 3
launcher=("$@")
[ "${LIBRUN_DEVICE:-}" = cuda ] && rows_per_job=1
seconds=${FAULT_SECONDS:-25} seed=${FAULT_SEED:-$RANDOM} late_limit_ms=${DEATH_LATE_MS:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mark=fault_deaths_$$
LIBRUN_LOG=debug LIBRUN_LOG_FILE=$work/points "$@" "$np" "$table" --clean || exit $?
mapfile -t rows < <("$table" --points "$work/points" --list "$np" --seed "$seed" \
  --actions die,exit,abort,stop)
[ ${#rows[@]} -gt 0 ] || { echo "FAILED: the table has no rows"; exit 1; }

# What Open MPI leaves itself when a rank is killed is none of ours.
entries() { find /dev/shm -mindepth 1 -printf '%f\n' | grep -v -e '^vader' -e '^open_mpi' | sort; }
marked() { grep -l -s -z "^MARK=$mark$" /proc/[0-9]*/environ | sed 's,/proc/,,; s,/.*,,'; }
processes() { marked | wc -l; }
end_processes() { marked | xargs -r kill -9 2>/dev/null; }

failed=0 lost=0
# run_job ROW... : mpirun itself may lose its way when many of its ranks die at once (an error of PMIX).
# Its judge tells of a row that hangs, well before the job's time is over. So rows without a verdict
# run again, each in a job of its own; what has none after three of them is mpirun's loss, and counted.
run_job() {
  local before output code row unjudged=()
  before=$(entries)
  : >"$work/trail"
  output=$(MARK=$mark FAULT_TRAIL=$work/trail timeout --kill-after=5 60 "${launcher[@]}" $((np * $#)) \
    --mca orte_enable_recovery 1 -x MARK -x FAULT_TRAIL "$deaths" "$@" 2>"$work/errors")
  code=$?
  grep -E '^(ok|FAILED|  )' <<<"$output" >>"$work/results"
  grep -A9 '^FAILED' <<<"$output" && failed=1
  if grep '^crashed' "$work/trail"; then
    echo "FAILED: a survivor crashed"
    failed=1
  fi
  for row in "$@"; do
    if ! grep -q -F -e "ok $row " -e "FAILED $row " <<<"$output"; then
      unjudged+=("$row")
    elif [ "$(grep -c -x -F "ended $row" "$work/trail")" -lt $((np - 1)) ]; then
      echo "FAILED: not all survivors came to their end: $row"
      failed=1
    fi
  done
  for _ in $(seq 50); do
    [ "$(processes)" -eq 0 ] && break
    sleep 0.1
  done
  if [ ${#unjudged[@]} -gt 0 ]; then
    end_processes
  else
    # Those of a launcher that had to be ended are not ours to answer for.
    [ $code -lt 124 ] || end_processes
    [ "$(processes)" -eq 0 ] || { echo "FAILED: processes stay after $*"; failed=1; }
    [ "$(entries)" = "$before" ] || { echo "FAILED: /dev/shm changed by $*"; failed=1; }
  fi
  judged_alone "$code" "${unjudged[@]}"
}

# judged_alone CODE ROW... : the rows once more, each alone
judged_alone() {
  local code=$1 row
  shift
  for row in "$@"; do
    attempts[$row]=$((${attempts[$row]:-0} + 1))
    echo "no verdict (code $code): $row"
    if [ "${attempts[$row]}" -le 3 ]; then
      run_job "$row"
    else
      tail -n 5 "$work/errors"
      lost=$((lost + 1))
    fi
  done
}
declare -A attempts=()

done_rows=0
while [ $done_rows -lt ${#rows[@]} ] && { [ "$seconds" -eq 0 ] || [ $SECONDS -lt "$seconds" ]; }; do
  job=("${rows[@]:done_rows:rows_per_job}")
  run_job "${job[@]}"
  done_rows=$((done_rows + ${#job[@]}))
done

late=$(sed -n 's/.* told_after_ms //p' "$work/results" | sort -n)
if [ -n "$late" ]; then
  median=$(sed -n "$((($(wc -l <<<"$late") + 1) / 2))p" <<<"$late") latest=$(tail -n 1 <<<"$late")
  echo "np $np: survivors were told after $median ms (median), $latest ms (latest)"
  if [ "$latest" -gt "$late_limit_ms" ]; then
    echo "FAILED: later than $late_limit_ms ms:"
    awk -v limit="$late_limit_ms" '$NF > limit && /told_after_ms/' "$work/results"
    failed=1
  fi
fi
if [ $((10 * (lost - 2))) -gt "$done_rows" ]; then
  echo "FAILED: more than two and a tenth of the rows without a verdict"
  failed=1
fi
echo "np $np: $done_rows of ${#rows[@]} rows ran, $lost of them lost by mpirun; FAULT_SEED=$seed"
[ $failed -eq 0 ] || echo "again: mpirun --oversubscribe --mca orte_enable_recovery 1 -np $np $deaths 'ROW'"
exit $failed
