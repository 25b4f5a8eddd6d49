#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: update_reliability_md.sh [--check] BUILD_FOLDER
# Writes the table of docs/reliability.md from car_stress --list-scenarios, or checks that it is up to
# date. Checks in any case that each scenario has a preset or tests, that ctest knows all tests it names,
# and that no test carries a number that is not in the table.
set -euo pipefail
check=0
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
build=$(realpath "${1:?usage: update_reliability_md.sh [--check] BUILD_FOLDER}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
doc=docs/reliability.md
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
table=$("$build/bin/car_stress" --list-scenarios=markdown)
known=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p')
numbered=$(grep -rhoE '\bB[0-9]{2}\b' tests | sort -u)

failures=0
fail() {
  echo "error: $*"
  failures=1
}
ids=
while IFS='|' read -r _ id _ _ _ outcome tests preset _; do
  read -r id <<<"$id"
  ids+="$id "
  read -r preset <<<"$preset" || true
  for name in $tests; do
    # Only a build with CUDA knows those that are for GPUs alone.
    grep -q "^$name" <<<"$known" || [ -e "tests/mpi/$name.cpp" ] || fail "$id: ctest knows no $name"
  done
  if [ -z "${tests// /}${preset// /}" ]; then
    [[ $outcome == *"ot run"* ]] || fail "$id has neither a test nor a preset, and does not say why"
  elif [ -z "${preset// /}" ]; then
    grep -qx "$id" <<<"$numbered" || fail "$id: no file of tests/ has this number"
  fi
done < <(tail -n +3 <<<"$table")
for id in $numbered; do
  [[ " $ids" == *" $id "* ]] || fail "tests have the number $id, car_stress --list-scenarios does not"
done

begin='<!-- begin: scripts/update_reliability_md.sh -->'
end='<!-- end -->'
fresh=$(awk -v begin="$begin" -v end="$end" -v table="$table" '
  $0 == begin { print; print table; skip = 1; next }
  $0 == end { skip = 0 }
  !skip { print }' "$doc")
if [ "$check" -eq 0 ]; then
  printf '%s\n' "$fresh" >"$doc"
elif ! diff <(printf '%s\n' "$fresh") "$doc"; then
  fail "$doc is old: run scripts/update_reliability_md.sh build/host"
fi
exit "$failures"
