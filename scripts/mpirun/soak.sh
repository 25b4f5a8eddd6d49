#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing, builds, and runs car_stress for long on the ranks of this machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib/setup.sh"
. "$LIBRUN_ROOT/scripts/lib/mps.sh"

usage() {
  cat <<'EOT'
usage: scripts/mpirun/soak.sh [-np N] [-o FOLDER] [car_stress options]

Installs missing packages, builds librun, and runs mpirun --oversubscribe -np N car_stress: on the GPUs
where there are some and nvcc is found, else on the host. More ranks than GPUs share them through a
private MPS, which ends with the run.

  scripts/mpirun/soak.sh                                   an hour with 4 ranks
  scripts/mpirun/soak.sh --preset night                    eight hours, larger messages
  scripts/mpirun/soak.sh --cycles 100000 --checkpoint fake --calls-per-cycle 2 --max-bytes 16K \
    --comms 2 --graphs 2                                   many short cycles
  scripts/mpirun/soak.sh --scenario B05 --cycles 10000     one scenario, for long

  -np N        ranks [4]
  -o FOLDER    where soak.log, soak.json and junit.xml go [soak-DATE-TIME]
  --help       this text and, once it is built, car_stress's own options

Progress goes to the terminal and to soak.log. junit.xml says that the run failed until it has ended
well. Ends with car_stress's exit code; 3 when packages are missing and cannot be installed.
EOT
}

nvcc=$(find_nvcc)
gpus=$(count_gpus)
preset=host
[ "$gpus" -eq 0 ] || [ -z "$nvcc" ] || preset=cuda
stress=$LIBRUN_ROOT/build/$preset/bin/car_stress
np=4
folder=soak-$(date -u +%Y%m%d-%H%M%S)
args=()
length=(--preset hour)
while [ $# -gt 0 ]; do
  case $1 in
    -np | --np)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "-np takes a number of ranks, not \"${2:-}\"" 2
      np=$2
      shift 2
      continue
      ;;
    -o)
      [ -n "${2:-}" ] || die "-o takes a folder" 2
      folder=$2
      shift 2
      continue
      ;;
    -h | --help)
      usage
      [ ! -x "$stress" ] || { echo && exec "$stress" --help; }
      exit 0
      ;;
    --cycle* | --duration* | --preset* | --scenario* | --list*) length=() ;;
  esac
  args+=("$1")
  shift
done

install_packages "${LIBRUN_PACKAGES[@]}"
if [ "$preset" = cuda ]; then
  say "$gpus GPU(s) and $nvcc: the CUDA build, in build/cuda"
  build_preset cuda car_stress "-DCMAKE_CUDA_COMPILER=$nvcc" -DCMAKE_CUDA_ARCHITECTURES=native
else
  say "the host build: $([ "$gpus" -eq 0 ] && echo 'no GPU here' || echo "$gpus GPU(s), but no nvcc")"
  build_preset host car_stress
fi
allow_root_mpi
mkdir -p "$folder"
launch=(mpirun --oversubscribe -np "$np" "$stress" --json "$folder/soak.json" --junit "$folder/junit.xml"
  "${length[@]}" "${args[@]}")
say "${launch[*]}"

logged() { "$@" 2>&1 | tee "$folder/soak.log"; }
if [ "$preset" = cuda ] && [ "$np" -gt "$gpus" ]; then
  trap stop_mps EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  start_mps || say "MPS does not start: ranks that share a GPU are time-sliced, which is slow"
fi
code=0
logged with_mps "${launch[@]}" || code=$?
say "exit code $code; the files are in $folder"
exit "$code"
