#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A check that fails on one rank must fail the job, name the rank, and hang nobody.
# usage: harness_test.sh PROBE LAUNCHER...
probe=$1
shift
failures=0

# run TAG WANTED_CODE TEXT LAUNCHER...: runs one test case, looks at exit code and output.
run() {
  tag=$1 wanted=$2 text=$3
  shift 3
  output=$("$@" "$probe" "[$tag]" 2>&1)
  code=$?
  if [ "$wanted" = nonzero ] && [ $code -ne 0 ]; then wanted=$code; fi
  if [ $code -ne "$wanted" ]; then
    echo "$tag: exit code $code, expected $wanted"
    failures=1
  fi
  case $output in
    *"$text"*) ;;
    *)
      echo "$tag: the output does not say \"$text\":"
      echo "$output"
      failures=1
      ;;
  esac
}

run pass 0 "All tests passed" "$@"
run check nonzero "rank 1 failed in \"a check fails on rank 1\"" "$@"
run check nonzero "the value is 42" "$@"
run require 86 "rank 1 failed in \"rank 1 leaves before a barrier\"" "$@"
run require 86 "rank 0, 2 did not reach the end" "$@"
exit $failures
