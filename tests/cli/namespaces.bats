#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B13, B40: ranks in namespaces of their own, as in containers. Needs root.
load helpers

setup_file() {
  unshare -m true 2>/dev/null || export NO_UNSHARE=1
}

# in_namespace FLAGS COMMAND...: four ranks, each behind its own unshare.
in_namespaces() {
  [ -z "${NO_UNSHARE:-}" ] || skip "unshare is not allowed here"
  local flags=$1
  # shellcheck disable=SC2086
  $MPIRUN --mca btl tcp,self -np 4 unshare $flags sh -c "$2"
}

bench() { echo "exec $BIN/car_bench -b 1K -e 64K -f 8 -n 2 -w 1"; }

@test "B13 B40 each rank has its own small /dev/shm" {
  run -0 in_namespaces "-m" "mount -t tmpfs -o size=1m tmpfs /dev/shm; $(bench)"
  says "0 OK"
}

@test "B13 a /dev/shm that cannot be written" {
  run -0 in_namespaces "-m" "mount -t tmpfs -o ro tmpfs /dev/shm; $(bench)"
  says "0 OK"
}

@test "B40 PID, IPC and UTS namespaces" {
  run -0 in_namespaces "-p --fork" "$(bench)"
  says "0 OK"
  run -0 in_namespaces "-i" "$(bench)"
  says "0 OK"
  run -0 in_namespaces "-u" "hostname other-host-\$\$; $(bench)"
  says "0 OK"
}

@test "B40 a rank that is elsewhere: all are told what to do" {
  # A second machine is hard to come by: the fault makes rank 3 say that it is on one.
  LIBRUN_FAULT=create_before_hello@3:corrupt run -3 mpi 4 car_bench -b 1K -e 1K -n 1
  says "rank 3 is on host"
  says "within one node"
}
