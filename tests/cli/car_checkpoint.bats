#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# car_checkpoint: every flag, every bad value, and real ranks as far as can be without a GPU.
load helpers

# start MODE NP JOB: ranks that wait, active or suspended; their PIDs go to `pids`.
start() {
  local mode=$1 np=$2 i
  export LIBRUN_DEVICE=host LIBRUN_JOB=$3
  # shellcheck disable=SC2086
  $MPIRUN -np "$np" "$HELPERS/waiting_ranks" "$mode" "$PWD" >ranks.log 2>&1 3>&- &
  launcher=$!
  pids=()
  for ((i = 0; i < np; i++)); do
    for _ in $(seq 300); do
      [ -f "ready.$i" ] && break
      sleep 0.1
    done
    pids+=("$(cat "ready.$i")")
  done
}

# finish: the ranks go on, and find everything right.
finish() {
  touch go
  wait "$launcher" || {
    cat ranks.log
    return 1
  }
}

teardown() {
  touch go
}

@test "car_checkpoint: help fits in 80 columns and has examples and exit codes" {
  run -0 alone car_checkpoint --help
  says "car_checkpoint --job"
  says "Exit codes"
  for flag in --job --all --list --action --hold --timeout --gpu-map --json --version; do
    says "$flag"
  done
  [ "$(awk '{ if (length($0) > 80) n++ } END { print n+0 }' <<<"$output")" -eq 0 ]
  run -0 alone car_checkpoint --version
  [[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
}

@test "car_checkpoint: each bad value is named and ends with 2" {
  refused car_checkpoint "say which processes"
  refused car_checkpoint none --action none 1
  refused car_checkpoint soon --hold soon 1
  refused car_checkpoint -1 --hold -1 1
  refused car_checkpoint 0 --timeout 0 1
  refused car_checkpoint abc abc
  refused car_checkpoint "one of them" --all 1
  refused car_checkpoint "one of them" --all --job j
  refused car_checkpoint "--gpu-map" --action lock --gpu-map 0=1 1
  refused car_checkpoint "--hold" --action lock --hold 3 1
  refused car_checkpoint --nonsense --nonsense
}

@test "car_checkpoint: processes that are not there, and jobs that nobody has" {
  true &
  gone=$!
  wait "$gone"
  run -1 alone car_checkpoint "$gone"
  says "process $gone: there is no such process"
  says "nothing was touched"
  run -3 alone car_checkpoint --job no-such-job
  says "no-such-job"
}

@test "car_checkpoint: active ranks are shown with what is in the way, and refused" {
  start active 3 "active.$BATS_TEST_NUMBER.$$"
  run -0 alone car_checkpoint --list --job "$LIBRUN_JOB"
  says "rank 0 (process ${pids[0]}): communicator of rank 0 of 3 is active"
  says "rank 2 (process ${pids[2]}): communicator of rank 2 of 3 has 1 mapping of rank 0's memory open"
  run -1 alone car_checkpoint --job "$LIBRUN_JOB"
  says "is active: suspend it"
  says "refused, nothing was touched"
  run -1 alone car_checkpoint --action lock "${pids[1]}"
  says "rank 1 (process ${pids[1]})"
  alone car_checkpoint --list --json out.json "${pids[@]}"
  [ "$(json out.json 'len(d["processes"])')" -eq 3 ]
  [ "$(json out.json 'd["processes"][1]["communicators"][0]["state"]')" = active ]
  [ "$(json out.json 'd["processes"][1]["communicators"][0]["open_mappings"]')" -eq 2 ]
  [ "$(json out.json 'd["processes"][1]["pid"]')" -eq "${pids[1]}" ]
  finish
}

@test "car_checkpoint: suspended ranks are ready; without a driver that ends with 3" {
  start suspended 3 "suspended.$BATS_TEST_NUMBER.$$"
  run -0 alone car_checkpoint --list --job "$LIBRUN_JOB"
  [ "$(grep -c ' suspended .* yes$' <<<"$output")" -eq 3 ]
  [[ $output != *" is active"* ]]
  alone car_checkpoint --list --all --json all.json
  for pid in "${pids[@]}"; do
    [ "$(json all.json "[p['job'] for p in d['processes'] if p['pid'] == $pid]")" = "['$LIBRUN_JOB']" ]
  done
  command -v nvidia-smi >/dev/null && skip "there is a driver here"
  run -3 alone car_checkpoint --job "$LIBRUN_JOB"
  says "cannot checkpoint here"
  finish
}

@test "car_checkpoint: a process without librun is taken, and said to be unseen" {
  sleep 30 3>&- &
  sleeper=$!
  run -0 alone car_checkpoint --list "$sleeper"
  says "process $sleeper: no librun status: its blockers cannot be seen"
  kill "$sleeper"
}

@test "car_stress: a checkpoint by the driver is not run where there is none, and never passed" {
  run -77 mpi 2 car_stress --cycles 1 --device host --checkpoint driver
  says "not run: the driver cannot checkpoint here: rank 0: the data is on the host"
  refused car_stress rotate --gpu-map swap --checkpoint driver
  refused car_stress "--checkpoint driver" --gpu-map rotate
}
