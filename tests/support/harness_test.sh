#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A check that fails on one rank must fail the job, name the rank, and hang nobody.
# usage: harness_test.sh PROBE LAUNCHER...
probe=$1
shift
failures=0

fail() {
  echo "$1; the output was:"
  echo "$output"
  failures=1
}

says() {
  case $output in
    *"$1"*) ;;
    *) fail "the output does not say \"$1\"" ;;
  esac
}

output=$("$@" "$probe" "[pass]" 2>&1) || fail "a test that passes ends with $?"
says "All tests passed"

output=$("$@" "$probe" "[check]" 2>&1) && fail "a check that fails on rank 1 ends with 0"
says "rank 1 failed in \"a check fails on rank 1\""
says "the value is 42"

# 86: the rank that failed ended the job, rather than the launcher at its time limit.
output=$("$@" "$probe" "[require]" 2>&1)
code=$?
[ $code -eq 86 ] || fail "a rank that leaves before a barrier ends with $code"
says "rank 1 failed in \"rank 1 leaves before a barrier\""
says "rank 0, 2 did not reach the end"
exit $failures
