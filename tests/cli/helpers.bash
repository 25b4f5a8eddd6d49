# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the command line: BIN is the folder of the tools, MPIRUN the launcher.
# shellcheck disable=SC2154  # bats sets status, output and lines
bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  unset LIBRUN_FAULT LIBRUN_ALGO
}

# mpi NP TOOL ARGS...: runs a tool under the launcher.
mpi() {
  local np=$1 tool=$2
  shift 2
  # shellcheck disable=SC2086
  $MPIRUN -np "$np" "$BIN/$tool" "$@"
}

# alone TOOL ARGS...: without a launcher.
alone() {
  local tool=$1
  shift
  "$BIN/$tool" "$@"
}

says() {
  [[ $output == *"$1"* ]] || {
    echo "the output does not say: $1"
    echo "$output"
    return 1
  }
}

# times N TEXT: TEXT stands in N lines.
times() {
  local n
  n=$(grep -c -F -- "$2" <<<"$output")
  [ "$n" -eq "$1" ] || {
    echo "\"$2\" stands in $n lines, expected $1:"
    echo "$output"
    return 1
  }
}

# refused TOOL TEXT ARGS...: exit code 2 and the text, and not a word of a run.
refused() {
  local tool=$1 text=$2
  shift 2
  run -2 alone "$tool" "$@"
  says "$text"
  [[ $output != *"# "* ]]
}

valid_json() { python3 -m json.tool "$1" >/dev/null; }

# json FILE EXPRESSION: prints a Python expression over the document d.
json() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print($2)" "$1"; }
