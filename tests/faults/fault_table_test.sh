#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rows of the table that leave all ranks alive: learns the phases from a clean run, then goes on
# for FAULT_SECONDS (0: until all rows are done) in the order of FAULT_SEED.
# usage: fault_table_test.sh FAULT_TABLE LAUNCHER...
set -u
table=$1
shift
points=$(mktemp)
trap 'rm -f "$points"' EXIT
LIBRUN_LOG=debug LIBRUN_LOG_FILE=$points "$@" "$table" --clean || exit $?
seconds=${FAULT_SECONDS:-25}
limit=("timeout" "$((seconds + 100))")
[ "$seconds" -eq 0 ] && limit=()
"${limit[@]}" "$@" "$table" --points "$points" --seconds "$seconds" ${FAULT_SEED:+--seed "$FAULT_SEED"}
