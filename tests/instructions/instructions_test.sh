#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: instructions_test.sh PROGRAM COMPILER
# Counts the instructions of small calls under callgrind, which no other work on the machine changes,
# and compares them with expected.txt: 2 % more is a failure, and 2 % less wants the table changed.
set -euo pipefail
program=$1
compiler=$2
table=$(dirname "${BASH_SOURCE[0]}")/expected.txt
readonly calls=100

skip() {
  echo "not run: $1"
  exit 77
}
command -v valgrind >/dev/null || skip "valgrind is not installed"
made_for=$(sed -n 's/^# compiler: //p' "$table")
[ "$compiler" = "$made_for" ] || skip "the table is for $made_for, this is $compiler"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
while read -r name expected; do
  case $name in '' | \#*) continue ;; api) counted=counted_call ;; *) counted=counted_launch ;; esac
  LIBRUN_CHECK=0 valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
    --toggle-collect="$counted" "$program" "$name" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
  total=$(sed -n 's/^.*Collected : *//p' "$work/log")
  each=$(((total + calls / 2) / calls))
  verdict=ok
  ((each * 100 <= expected * 102)) || verdict="FAILED: more than $expected"
  ((each * 100 >= expected * 98)) || verdict="FAILED: less than $expected, write it into the table"
  printf '%-18s %6d instructions a call: %s\n' "$name" "$each" "$verdict"
  [ "$verdict" = ok ] || failed=1
done <"$table"
exit "$failed"
