#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For a machine without network whose packages are there already: builds from source into a folder
# and runs the tests, on the GPUs if there are any.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
. "$LIBRUN_ROOT/scripts/lib/steps.sh"
. "$LIBRUN_ROOT/scripts/lib/mps.sh"

usage() {
  cat <<'EOT'
usage: scripts/gpu_test.sh FOLDER [--np "1 2 4 8"] [--budget SECONDS] [--only "GROUP..."]
                           [ctest options]

Configures and builds librun in FOLDER, with whatever backends this machine allows, and runs the
tests there: on the GPUs where there are some, else on the host. Installs nothing. Needs cmake, g++,
MPI, CLI11, spdlog, fmt, nlohmann-json, Catch2 and python3. Groups, in this order:

  build      always
  unit       the unit tests, on the host
  mpi        each test of tests/mpi, at each number of ranks of --np
  stress     car_stress: 300 cycles with fake checkpoints, at 2 and 4 ranks
  bench      car_bench at 2 ranks, with graphs
  faults     the table of faults, rows that leave all ranks alive, FAULT_SECONDS [25] at 2, 4 and 8 ranks
  death      ranks that die, at 4 ranks and without MPS, which would take the survivors down too. With
             fewer than 4 GPUs the ranks are time-sliced, and only the small cases run
  checkpoint real checkpoints by the driver, without MPS, at 1, 2 and 4 ranks: 20 cycles of car_stress,
             and of ranks that wait by car_checkpoint; on 2 GPUs or more also onto another GPU
  sanitizer  compute-sanitizer (memcheck, racecheck) on kernels that do not wait, 1 and 2 ranks
  cycles     only when asked for: graph_replay_test, 1000 cycles at 2, 4 and 8 ranks
  soak       only when asked for: car_stress, 10,000 cycles with fake checkpoints, at 4 ranks
  measure    only when asked for: car_info --calibrate at 2 ranks, car_bench --tune at 2, 4 and 8, with
             graphs, into FOLDER/calibration.json and FOLDER/tuning.json

Where ranks outnumber GPUs they share them through a private MPS, which ends with the script. What
does not fit into the budget (540 seconds) is skipped; a second run on the same FOLDER builds only
what has changed. Ctest options choose tests: -R lifecycle. FOLDER/report.md and report.json hold
the results, FOLDER/logs all output. The last line is "N passed, N failed"; the exit status is 0
only when nothing failed, 2 for a bad command line.
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
command_line="scripts/gpu_test.sh $*"
mkdir -p "$1" || exit 2
folder=$(cd "$1" && pwd)
shift
ranks=(1 2 4 8)
budget_s=540
small_deaths='death\.(kill\.4|exit\.4|stop_and_continue)'
groups=' unit mpi stress bench faults death checkpoint sanitizer '
ctest_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --np | --budget | --only)
      [ -n "${2:-}" ] || die "$1 takes a value" 2
      [ "$1" = --only ] || [[ $2 =~ ^[0-9\ ]+$ ]] || die "$1 takes numbers, not \"$2\"" 2
      case $1 in
        --np) read -ra ranks <<<"$2" ;;
        --budget) budget_s=$2 ;;
        --only) groups=" $2 " ;;
      esac
      shift
      ;;
    *) ctest_options+=("$1") ;;
  esac
  shift
done

gpus=$(count_gpus)
nvcc=$(find_nvcc)
device=host
[ "$gpus" -eq 0 ] || device=cuda
allow_root_mpi
open_steps "$folder" "$budget_s"
trap 'stop_mps "$folder/logs"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

wanted() { [[ $groups == *" $1 "* ]]; }

# shared NP COMMAND... : as clients of MPS when NP ranks must share GPUs.
shared() {
  local np=$1
  shift
  if [ "$np" -gt "$gpus" ]; then with_mps "$@"; else "$@"; fi
}

# launch NP COMMAND... : under mpirun, which ends the ranks at the limit of the step.
launch() {
  local np=$1
  shift
  limited mpirun --oversubscribe --timeout "$STEP_LIMIT_S" -np "$np" "$@"
}

build() {
  local options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo -DLIBRUN_BUILD_EXAMPLES=OFF
    -DLIBRUN_TEST_TIMEOUT_S=60)
  command -v ninja >/dev/null && options+=(-G Ninja)
  if [ -n "$nvcc" ]; then
    options+=(-DLIBRUN_WITH_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc"
      -DCMAKE_CUDA_ARCHITECTURES="$([ "$gpus" -gt 0 ] && echo native || echo 90)")
  else
    options+=(-DLIBRUN_WITH_CUDA=OFF)
  fi
  limited cmake -S "$LIBRUN_ROOT" -B "$folder" "${options[@]}" &&
    limited cmake --build "$folder" --parallel "$(nproc)"
}

# tests_with LABEL... : the names of the tests that have all of them and that the options choose.
tests_with() {
  local labels=() label
  for label in "$@"; do labels+=(-L "^$label\$"); done
  ctest --test-dir "$folder" -N "${labels[@]}" "${ctest_options[@]}" |
    sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p'
}

# run_test NP NAME : where there are GPUs, no test may say that it finds none.
run_test() {
  local np=$1 name=${2//./[.]}
  shared "$np" timeout --kill-after=10 "$STEP_LIMIT_S" ctest --test-dir "$folder" \
    --verbose --no-tests=error "${ctest_options[@]}" -R "^$name\$" -j1 || return
  [ "$gpus" -eq 0 ] || ! grep -q 'skipped: no CUDA here' "$STEP_LOG"
}

# run_deaths LIMIT_S NAME... : one at a time.
run_deaths() {
  local limit_s=$1 name
  shift
  for name in "$@"; do step death "$name" 15 "$limit_s" run_test 4 "$name"; done
}

# run_tests GROUP NP LABEL... : one at a time.
run_tests() {
  local group=$1 np=$2 name
  shift 2
  for name in $(tests_with "$@"); do step "$group" "$name" 10 75 run_test "$np" "$name"; done
}

# stress NP CYCLES
stress() {
  shared "$1" launch "$1" "$folder/bin/car_stress" --device "$device" --cycles "$2" \
    --checkpoint fake --progress never --json "$folder/car_stress.np$1.json"
}

bench() {
  shared 2 launch 2 "$folder/bin/car_bench" --device "$device" --graph 20 \
    -b 1K -e 16M -f 4 -J "$folder/car_bench.json"
}

# replay_cycles NP CYCLES
replay_cycles() {
  GRAPH_CYCLES=$2 shared "$1" launch "$1" "$folder/tests/mpi/graph_replay_test" 'graphs of 1 KiB*'
}

calibrate() {
  shared 2 launch 2 "$folder/bin/car_info" --calibrate --device "$device" \
    --json "$folder/calibration.json"
}

# tune NP
tune() {
  shared "$1" launch "$1" "$folder/bin/car_bench" --device "$device" --graph 20 -e 64M \
    --tune="$folder/tuning.json" -J "$folder/tune.np$1.json"
}

# real_checkpoints NP [OPTION...]
real_checkpoints() {
  local np=$1
  shift
  launch "$np" "$folder/bin/car_stress" --device "$device" --cycles 20 --max-bytes 1M \
    --checkpoint driver --progress never --timeout 30s "$@"
}

# external_checkpoint NP MODE [OPTION...] : ranks that share a GPU take what does not wait.
external_checkpoint() {
  local alone=()
  [ "$1" -le "$gpus" ] || alone=(env LIBRUN_ALGO=stepped LIBRUN_SELFTEST=0)
  limited "${alone[@]}" "$LIBRUN_ROOT/scripts/lib/external_checkpoint.sh" "$folder" "$@"
}

# sanitize TOOL NP : without MPS. Stepped kernels end without waiting for a peer.
sanitize() {
  LIBRUN_CHECK=1 LIBRUN_SELFTEST=0 launch "$2" "$sanitizer" --tool "$1" --error-exitcode 9 \
    "$folder/tests/mpi/all_reduce_test" '[stepped]'
}

step build build 30 "$budget_s" build || groups=
if wanted unit; then run_tests unit 1 unit; fi
export LIBRUN_DEVICE=$device
if wanted mpi || wanted stress || wanted bench || wanted faults || wanted cycles || wanted soak ||
  wanted measure; then
  if [ "$gpus" -gt 0 ] && ! start_mps; then
    record mpi mps skipped 0 'MPS does not start: ranks that share a GPU are time-sliced'
  fi
fi
if wanted mpi; then
  for np in "${ranks[@]}"; do run_tests "mpi, np $np" "$np" mpi "np$np"; done
fi
if wanted stress; then
  for np in 2 4; do step stress "car_stress.np$np" 15 120 stress "$np" 300; done
fi
if wanted bench && step bench car_bench.np2 15 90 bench; then
  cat "$folder/logs/car_bench.np2.log"
fi
if wanted faults; then
  for np in 2 4 8; do
    step faults "fault_table.np$np" 30 $((${FAULT_SECONDS:-25} + 120)) run_test "$np" "fault_table.np$np"
  done
fi
if wanted measure; then
  step measure calibrate.np2 15 60 calibrate
  for np in 2 4 8; do step measure "tune.np$np" 30 180 tune "$np"; done
fi
if wanted cycles; then
  for np in 2 4 8; do step cycles "graph_replay_test.np$np" 60 300 replay_cycles "$np" 1000; done
fi
if wanted soak; then step soak car_stress.np4 60 "$budget_s" stress 4 10000; fi
stop_mps "$folder/logs"
if wanted death; then
  mapfile -t deaths < <(tests_with death)
  if [ "$device" = host ] || [ "$gpus" -ge 4 ]; then
    run_deaths 75 "${deaths[@]}"
  else
    # A rank's news waits for its turn on the GPU.
    export DEATH_LATE_MS=5000
    mapfile -t deaths < <(printf '%s\n' "${deaths[@]}" | grep -xE "$small_deaths")
    run_deaths 90 "${deaths[@]}"
    record death others skipped 0 "need 4 GPUs, there are $gpus"
  fi
fi
if wanted checkpoint; then
  if [ "$gpus" -eq 0 ]; then
    record checkpoint driver skipped 0 'no GPU'
  else
    for np in 1 2 4; do
      step checkpoint "car_stress.driver.np$np" 30 180 real_checkpoints "$np"
      step checkpoint "car_checkpoint.np$np" 20 90 external_checkpoint "$np" suspended
    done
    step checkpoint refusal.np2 20 90 external_checkpoint 2 active
    if [ "$gpus" -ge 2 ]; then
      step checkpoint "car_stress.rotate.np$gpus" 30 180 real_checkpoints "$gpus" --gpu-map rotate
      step checkpoint car_checkpoint.swap.np2 20 90 external_checkpoint 2 suspended --gpu-map 0=1,1=0
    else
      record checkpoint rotate skipped 0 'one GPU'
    fi
  fi
fi
if wanted sanitizer; then
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  if [ "$gpus" -eq 0 ] || [ -z "$sanitizer" ]; then
    record sanitizer compute-sanitizer skipped 0 'no GPU, or no compute-sanitizer'
  else
    for np in 1 2; do
      for tool in memcheck racecheck; do
        step sanitizer "$tool.np$np" 20 120 sanitize "$tool" "$np"
      done
    done
  fi
fi

first_line() { "$@" 2>/dev/null | head -n 1; }
python3 "$LIBRUN_ROOT/scripts/lib/gpu_report.py" "$folder" \
  machine="$(uname -n), $(nproc) cores, $(. /etc/os-release && echo "$PRETTY_NAME")" \
  GPUs="$gpus x $(first_line nvidia-smi --query-gpu=name --format=csv,noheader)" \
  driver="$(first_line nvidia-smi --query-gpu=driver_version --format=csv,noheader)" \
  CUDA="$([ -n "$nvcc" ] && "$nvcc" --version | sed -n 's/.*release \([^,]*\).*/\1/p')" \
  compiler="$(first_line "${CXX:-c++}" --version)" cmake="$(first_line cmake --version)" \
  MPI="$(first_line mpirun --version)" device="$device" command="$command_line" \
  commit="$(git -C "$LIBRUN_ROOT" describe --always --dirty 2>/dev/null || echo unknown)" \
  date="$(date -u +%Y-%m-%dT%H:%M:%SZ)" seconds="$SECONDS of $budget_s"
