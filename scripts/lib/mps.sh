# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by gpu_test.sh and car_bench.sh: a private MPS, so that several ranks run on one GPU at the
# same time.

MPS_FOLDER=

# start_mps : its folders are new; nothing else on the machine uses it.
start_mps() {
  command -v nvidia-cuda-mps-control >/dev/null || return 1
  MPS_FOLDER=$(mktemp -d /tmp/librun_mps.XXXXXX)
  mkdir "$MPS_FOLDER/pipe" "$MPS_FOLDER/log"
  # The daemon keeps no descriptor of ours, or whoever reads our output would wait for it.
  # It sees all GPUs: CUDA_VISIBLE_DEVICES is for its clients, and would else count twice.
  with_mps env -u CUDA_VISIBLE_DEVICES nvidia-cuda-mps-control -d </dev/null >"$MPS_FOLDER/out" 2>&1 || {
    cat "$MPS_FOLDER/out" >&2
    rm -rf "$MPS_FOLDER"
    MPS_FOLDER=
    return 1
  }
}

# with_mps COMMAND... : runs it as a client, when MPS has been started.
with_mps() {
  [ -n "$MPS_FOLDER" ] || {
    "$@"
    return
  }
  # A subshell, since the command may be a function.
  (
    export CUDA_MPS_PIPE_DIRECTORY=$MPS_FOLDER/pipe CUDA_MPS_LOG_DIRECTORY=$MPS_FOLDER/log
    "$@"
  )
}

# stop_mps [FOLDER] : keeps its logs in FOLDER. May be called twice.
stop_mps() {
  [ -n "$MPS_FOLDER" ] || return 0
  echo quit | with_mps timeout 15 nvidia-cuda-mps-control >/dev/null 2>&1 || {
    local pid
    pid=$(cat "$MPS_FOLDER/pipe/nvidia-cuda-mps-control.pid" 2>/dev/null) && kill "$pid" 2>/dev/null
  }
  [ $# -eq 0 ] || cp "$MPS_FOLDER"/log/*.log "$1" 2>/dev/null
  rm -rf "$MPS_FOLDER"
  MPS_FOLDER=
}
