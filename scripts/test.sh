#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing, builds, and runs the tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
  cat <<'EOT'
usage: scripts/test.sh [--fast | --all] [--preset NAME] [ctest options]

Installs missing packages, builds librun with its tests, and runs all of them.

  scripts/test.sh                  everything
  scripts/test.sh --fast           what one and two ranks can test
  scripts/test.sh --all            everything, with all rows of the table of faults, which takes hours
                                   on two cores; then the sanitizers' builds
  scripts/test.sh -R lifecycle     tests whose name matches
  scripts/test.sh -L unit          tests with a label: unit mpi gpu api death faults cli np1 ...
  scripts/test.sh --preset tsan    the unit tests under ThreadSanitizer
  scripts/test.sh --preset asan    unit and mpi under AddressSanitizer and UBSan

Faults are drawn at random for FAULT_SECONDS a test (0: all); it prints a seed, which FAULT_SEED sets.
The results are also in build/<preset>/junit.xml. Ends with 0 when all tests pass; 3 when packages
are missing and cannot be installed.
EOT
}

# run_tests PRESET [CTEST ARGUMENT...]
run_tests() {
  local preset=$1
  shift
  case $preset in
    tsan) set -- -L '^unit$' "$@" ;;
    asan) set -- -L '^(unit|mpi)$' "$@" ;;
  esac
  build_preset "$preset"
  local dir=$LIBRUN_ROOT/build/$preset
  ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$(nproc)" \
    --output-junit "$dir/junit.xml" "$@"
}

preset=host
others=()
args=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --fast) args+=(-LE '^(np[3-9]|death|faults|cli)$') ;;
    --all)
      others=(tsan asan)
      export FAULT_SECONDS=0
      ;;
    --preset)
      [[ ${2:-} =~ ^(host|ci|asan|tsan|cuda)$ ]] ||
        die "--preset takes host, ci, asan, tsan or cuda, not \"${2:-}\"" 2
      preset=$2
      shift
      ;;
    *) args+=("$1") ;;
  esac
  shift
done

install_packages "${LIBRUN_PACKAGES[@]}"
allow_root_mpi
failed=0
for each in "$preset" "${others[@]}"; do
  run_tests "$each" "${args[@]}" || failed=$?
done
exit "$failed"
