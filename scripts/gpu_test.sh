#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For a machine without network whose packages are there already: builds from source into a folder
# and runs the tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

usage() {
  cat <<'EOT'
usage: scripts/gpu_test.sh FOLDER [ctest options]

Configures and builds librun in FOLDER, with whatever backends this machine allows, and runs the
tests there. Installs nothing. Needs cmake, g++, MPI, CLI11, spdlog, fmt, nlohmann-json, Catch2 and
bats. The results are in FOLDER/junit.xml and FOLDER/car_bench.json.
EOT
}

case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
  '' | -*)
    usage >&2
    exit 2
    ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
cmake -S "$LIBRUN_ROOT" -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo
cmake --build "$folder" --parallel "$(nproc)"

allow_root_mpi
failed=0
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(nproc)" \
  --output-junit "$folder/junit.xml" "$@" || failed=$?
"$folder/apps/car_info/car_info"
mpirun --oversubscribe --timeout 360 -np 8 "$folder/apps/car_bench/car_bench" \
  --baseline mpi -J "$folder/car_bench.json" || failed=$?
exit "$failed"
