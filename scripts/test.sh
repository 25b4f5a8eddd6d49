#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing, builds, and runs the tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
  cat <<'EOT'
usage: scripts/test.sh [--preset NAME] [--werror] [ctest options]

Installs missing packages, builds librun with its tests, and runs all of them.

  scripts/test.sh                       everything
  scripts/test.sh -L unit               only the unit tests
  scripts/test.sh -R lifecycle          tests whose name matches
  scripts/test.sh --preset asan -L mpi  under AddressSanitizer and UBSan

The results are also in build/<preset>/junit.xml. Ends with 0 when all tests pass.
EOT
}

preset=host
configure=()
args=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --preset)
      [ -n "${2:-}" ] || die "--preset takes host, asan, tsan or ci" 2
      preset=$2
      shift 2
      ;;
    --werror)
      configure+=(-DLIBRUN_WERROR=ON)
      shift
      ;;
    *)
      args+=("$1")
      shift
      ;;
  esac
done

install_packages "${LIBRUN_PACKAGES[@]}" bats
build_preset "$preset" "${configure[@]}"
allow_root_mpi
dir=$LIBRUN_ROOT/build/$preset
ctest --test-dir "$dir" --output-on-failure --no-tests=error -j 2 \
  --output-junit "$dir/junit.xml" "${args[@]}"
