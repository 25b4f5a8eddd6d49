#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B14: however a job ends, no process and no entry of ours in /dev/shm stays.
# usage: left_behind_test.sh SURVIVORS LAUNCHER...
survivors=$1
shift
[ "${LIBRUN_DEVICE:-}" = cuda ] && exit 77  # looks for memory files in /proc
# Open MPI leaves segments of its own when it is killed, so it talks over sockets here.
launch=("$@" --mca btl "tcp,self")
entries() { find /dev/shm -mindepth 1 -printf '%f\n' | grep -v -e '^vader' -e '^open_mpi' | sort; }
tag=left_behind_$$
before=$(entries)
failures=0

# marked: the processes that carry our mark in their environment.
marked() { grep -l -s -z "^MARK=$tag$" /proc/[0-9]*/environ | cut -d / -f 3; }
processes() { marked | wc -l; }
# connected: how many of them have the memory of three peers mapped, and their own.
connected() {
  local n=0 pid
  for pid in $(marked); do
    [ "$(grep -c -s '/memfd:' "/proc/$pid/maps")" -ge 4 ] && n=$((n + 1))
  done
  echo $n
}

check() {
  for _ in $(seq 100); do
    [ "$(processes)" -eq 0 ] && break
    sleep 0.1
  done
  if [ "$(processes)" -ne 0 ]; then
    echo "FAILED: processes stay after $1"
    failures=1
  fi
  if [ "$(entries)" != "$before" ]; then
    echo "FAILED: /dev/shm changed after $1:"
    diff <(echo "$before") <(entries)
    failures=1
  fi
}

# start: the job in the background, until all ranks have mapped each other.
start() {
  MARK=$tag "${launch[@]}" -x MARK "$survivors" run 1000 >/dev/null 2>&1 &
  job=$!
  for _ in $(seq 100); do
    [ "$(connected)" -eq 4 ] && return
    sleep 0.1
  done
  echo "FAILED: the ranks did not connect"
  failures=1
}

for signal in INT TERM KILL; do
  start
  kill -"$signal" $job
  wait $job 2>/dev/null
  check "SIG$signal to the launcher"
done
MARK=$tag "${launch[@]}" -x MARK -x LIBRUN_FAULT=create_after_exchange@1:die \
  "$survivors" run 1000 >/dev/null 2>&1
check "a death within create"
MARK=$tag "${launch[@]}" -x MARK "$survivors" kill 1000 >/dev/null 2>&1
check "a death in a call"
exit $failures
