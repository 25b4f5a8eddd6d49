#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing, builds, and runs car_bench on the ranks of this machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/setup.sh"

usage() {
  cat <<'EOT'
usage: scripts/mpirun/car_bench.sh [-np N] [car_bench options]

Installs missing packages, builds librun, and runs mpirun -np N car_bench.

  scripts/mpirun/car_bench.sh                            8 ranks, a table of sizes
  scripts/mpirun/car_bench.sh -np 2 --baseline mpi       beside MPI_Allreduce
  scripts/mpirun/car_bench.sh -np 4 --suspend-every 1    time of suspend and resume

  -np N     ranks [8]
  --help    this text and car_bench's own options
EOT
}

np=8
args=()
while [ $# -gt 0 ]; do
  case $1 in
    -np | --np)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "-np takes a number of ranks, not \"${2:-}\"" 2
      np=$2
      shift 2
      ;;
    -h | --help)
      usage
      args+=(--help)
      np=1
      shift
      ;;
    *)
      args+=("$1")
      shift
      ;;
  esac
done

install_packages "${LIBRUN_PACKAGES[@]}"
build_preset host
allow_root_mpi
bench=$LIBRUN_ROOT/build/host/apps/car_bench/car_bench
if [ "$np" -eq 1 ]; then exec "$bench" "${args[@]}"; fi
say "mpirun --oversubscribe -np $np car_bench ${args[*]}"
exec mpirun --oversubscribe -np "$np" "$bench" "${args[@]}"
