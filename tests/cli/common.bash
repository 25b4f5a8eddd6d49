# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Shared by the .bats files. BIN is the tool under test.

setup() {
  work=$(mktemp -d)
  unset LIBRUN_CHECK LIBRUN_LOG
}
teardown() { rm -rf "$work"; }

# ranks N ARGUMENTS... : the tool under mpirun.
ranks() {
  local np=$1
  shift
  run mpirun --oversubscribe --timeout 100 -np "$np" "$BIN" "$@"
}

# expect CODE TEXT : what `run` must have given.
expect() {
  [ "$status" -eq "$1" ] || {
    echo "exit $status instead of $1: $output"
    return 1
  }
  [[ $output == *"${2:-}"* ]] || {
    echo "no \"$2\" in: $output"
    return 1
  }
}

# lines_with TEXT : how many lines of the output hold it.
lines_with() { grep -cF -- "$1" <<<"$output"; }
