#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing, builds, and runs car_bench on the ranks of this machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/setup.sh"
. "$LIBRUN_ROOT/scripts/lib/mps.sh"

usage() {
  cat <<'EOT'
usage: scripts/mpirun/car_bench.sh [-np N] [car_bench options]

Installs missing packages, builds librun, and runs mpirun --oversubscribe -np N car_bench: on the GPUs
where there are some and nvcc is found, else on the host. More ranks than GPUs share them through a
private MPS, which ends with the run.

  scripts/mpirun/car_bench.sh                            8 ranks, a table of sizes
  scripts/mpirun/car_bench.sh -np 2 --baseline mpi       beside MPI_Allreduce
  scripts/mpirun/car_bench.sh -np 4 --suspend-every 1    time of suspend and resume

  -np N     ranks [8]
  --help    this text and, once it is built, car_bench's own options

Ends with car_bench's exit code; 3 when packages are missing and cannot be installed.
EOT
}

nvcc=$(find_nvcc)
gpus=$(count_gpus)
preset=host
[ "$gpus" -eq 0 ] || [ -z "$nvcc" ] || preset=cuda
bench=$LIBRUN_ROOT/build/$preset/bin/car_bench
np=8
limit_s=300
args=()
while [ $# -gt 0 ]; do
  case $1 in
    -np | --np)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "-np takes a number of ranks, not \"${2:-}\"" 2
      np=$2
      shift 2
      continue
      ;;
    -h | --help)
      usage
      [ ! -x "$bench" ] || { echo && exec "$bench" --help; }
      exit 0
      ;;
    -T | --timeout) limit_s=${2:-} ;;
    --timeout=*) limit_s=${1#*=} ;;
  esac
  args+=("$1")
  shift
done

install_packages "${LIBRUN_PACKAGES[@]}"
if [ "$preset" = cuda ]; then
  say "$gpus GPU(s) and $nvcc: the CUDA build, in build/cuda"
  build_preset cuda car_bench "-DCMAKE_CUDA_COMPILER=$nvcc" -DCMAKE_CUDA_ARCHITECTURES=native
else
  say "the host build: $([ "$gpus" -eq 0 ] && echo 'no GPU here' || echo "$gpus GPU(s), but no nvcc")"
  build_preset host car_bench
fi
allow_root_mpi
# car_bench ends by itself at its own limit; mpirun's is there for ranks that cannot.
launch=(mpirun --oversubscribe -np "$np")
[[ ! $limit_s =~ ^[0-9]{1,8}$ ]] || launch+=(--timeout "$((10#$limit_s + 60))")
say "mpirun --oversubscribe -np $np car_bench ${args[*]}"
launch+=("$bench" "${args[@]}")
if [ "$preset" = host ] || [ "$np" -le "$gpus" ]; then exec "${launch[@]}"; fi

trap stop_mps EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start_mps || say "MPS does not start: ranks that share a GPU are time-sliced, which is slow"
with_mps "${launch[@]}"
