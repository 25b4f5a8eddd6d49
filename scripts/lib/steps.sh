# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by gpu_test.sh: steps with a time limit, a log and a line in a table; one that fails does
# not hinder the next.

# open_steps FOLDER BUDGET_S : the table and the logs go to FOLDER.
open_steps() {
  STEPS_TABLE=$1/steps.tsv
  STEPS_LOGS=$1/logs
  STEPS_BUDGET_S=$2
  mkdir -p "$STEPS_LOGS"
  : >"$STEPS_TABLE"
}

remaining_s() { echo $((STEPS_BUDGET_S - SECONDS)); }

# record GROUP NAME passed|failed|skipped SECONDS NOTE
record() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$STEPS_TABLE"
  printf '%-8s %6s s  %s %s%s\n' "$3" "$4" "$1" "$2" "${5:+  ($5)}"
}

# step GROUP NAME NEEDS_S LIMIT_S COMMAND... : skipped when less than NEEDS_S is left. A command that
# ends with 77, or a test that ctest calls skipped, counts as skipped. The command is told its limit in
# STEP_LIMIT_S and its log in STEP_LOG.
step() {
  local group=$1 name=$2 needs_s=$3 limit_s=$4
  shift 4
  local left_s
  left_s=$(remaining_s)
  if [ "$left_s" -lt "$needs_s" ]; then
    record "$group" "$name" skipped 0 "no time: $left_s s left, $needs_s s wanted"
    return 0
  fi
  [ "$limit_s" -le "$left_s" ] || limit_s=$left_s
  local log=$STEPS_LOGS/${name//[^A-Za-z0-9._-]/_}.log
  local start=$EPOCHREALTIME code=0
  STEP_LIMIT_S=$limit_s STEP_LOG=$log "$@" >"$log" 2>&1 </dev/null || code=$?
  local seconds
  seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
  if [ "$code" -eq 77 ] || { [ "$code" -eq 0 ] && grep -q '[*][*][*]Skipped' "$log"; }; then
    record "$group" "$name" skipped "$seconds" "$(grep -m1 -oE '(skipped|not run): .*' "$log")"
  elif [ "$code" -eq 0 ]; then
    record "$group" "$name" passed "$seconds" ''
  else
    local note="exit $code"
    [ "$code" -ne 124 ] && [ "$code" -ne 137 ] || note="ended after $limit_s s"
    record "$group" "$name" failed "$seconds" "$note, see logs/${log##*/}"
    tail -n 25 "$log" | sed 's/^/    | /'
    return 1
  fi
}

# limited COMMAND... : for commands of a step; ends it at the step's limit.
limited() { timeout --kill-after=10 "$STEP_LIMIT_S" "$@"; }
