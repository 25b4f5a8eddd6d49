#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What goes wrong elsewhere, as far as it takes a launcher to show it: see docs/reliability.md.
load helpers

# Of librun in /dev/shm, and processes of this test.
left_behind() {
  find /dev/shm -mindepth 1 -name '*librun*'
  grep -l -s -z "^MARK=$BATS_TEST_TMPDIR$" /proc/[0-9]*/environ | grep -v "^/proc/\($$\|self\)/" |
    while read -r file; do
      grep -q car_stress "${file%environ}cmdline" 2>/dev/null && echo "$file"
    done
  true
}

gone_within_s() {
  for _ in $(seq $((10 * $1))); do
    [ -n "$(left_behind)" ] || return 0
    sleep 0.1
  done
  left_behind
  return 1
}

# background ARGS...: four ranks of car_stress, until the test ends them. MPI talks over sockets, since
# its own memory files stay behind when it is killed.
background() {
  # shellcheck disable=SC2086
  MARK=$BATS_TEST_TMPDIR $MPIRUN --mca btl tcp,self -x MARK -np 4 "$BIN/car_stress" --duration 60s \
    --max-bytes 64K --checkpoint fake --json-lines "$@" >lines 2>/dev/null 3>&- &
  job=$!
  for _ in $(seq 200); do
    [ "$(wc -l <lines)" -lt 5 ] || return 0
    sleep 0.1
  done
  echo "the ranks do not run"
  return 1
}

@test "scenarios: listed as text and markdown, refused by name" {
  run -0 alone car_stress --list-scenarios
  says "mpirun -np 4 car_stress --scenario B05"
  says "ctest -R"
  run -0 alone car_stress --list-scenarios markdown
  says "| B05 |"
  refused car_stress "\"X1\" is none" --scenario X1
  refused car_stress "has no preset" --scenario B38
  refused car_stress "needs 3 ranks" --scenario B33
  refused car_stress pdf --list-scenarios pdf
}

@test "scenarios: options behind a scenario overrule its own" {
  run -0 mpi 2 car_stress --scenario B05 --cycles 3 --json out.json --junit out.xml
  says "scenario B05, 2 ranks, 3 cycles"
  [ "$(json out.json 'd["scenario"]')" = B05 ]
  [ "$(json out.json 'd["moved_cycles"]')" -eq 3 ]
  grep -q 'classname="car_stress.B05"' out.xml
}

@test "B02 a rank that is killed is named by all others" {
  # With recovery the launcher leaves the others alone, and ends with 0 itself.
  MPIRUN="$MPIRUN --mca orte_enable_recovery 1" run mpi 4 car_stress --cycles 20 --max-bytes 64K \
    --kill-rank 2@5
  for rank in 0 1 3; do
    grep -q -E "rank $rank: cycle 5: .*(rank 2 is gone|It is rank 2 of the run)" <<<"$output" || {
      echo "rank $rank does not say it:"
      echo "$output"
      return 1
    }
  done
}

@test "B14 whatever ends a run, no process and no memory of it stays" {
  for signal in INT TERM KILL; do
    background
    kill -"$signal" "$job"
    wait "$job" || true
    gone_within_s 10
  done
  for cycle in 3 4 5 6; do # each dies in another part of its cycle, in some while suspended
    MARK=$BATS_TEST_TMPDIR MPIRUN="$MPIRUN --mca btl tcp,self -x MARK" run mpi 4 car_stress --cycles 9 \
      --max-bytes 64K --checkpoint fake --kill-rank 1@$cycle
    [ "$status" -ne 0 ]
    gone_within_s 10
  done
  run -0 mpi 4 car_stress --cycles 5 --max-bytes 64K
}

@test "B31 eight ranks on one core are exact and end in time" {
  MPIRUN="taskset -c 0 $MPIRUN --bind-to none" run -0 mpi 8 car_stress --cycles 8 --max-bytes 64K \
    --timeout 60s
  says "0 failures"
}

@test "B31 eight ranks on few cores are not far behind MPI" {
  run -0 mpi 8 car_bench -b 4K -e 4K -n 200 -w 20 --baseline mpi -J out.json
  [ "$(json out.json 'd["results"][0]["out_of_place"]["time"] < 20 * d["results"][0]["baseline"]["mpi"]["time"]')" = True ]
}

@test "what the ranks hold is compared, and is the same early and late" {
  run -0 mpi 2 car_stress --cycles 3 --max-bytes 64K --json out.json
  says "not compared, that takes 200 cycles"
  [ "$(json out.json 'd["held"][0]["flat"]')" = None ]
  run -0 mpi 2 car_stress --cycles 200 --calls-per-cycle 1 --max-bytes 16K --comms 2 --graphs 1 \
    --json out.json
  says "what rank 0 holds, early and late: descriptors"
  [ "$(json out.json 'all(r["flat"] for r in d["held"])')" = True ]
}

@test "JUnit: a run that is killed has failed, and a good one has times and its output" {
  background --junit out.xml
  kill -KILL "$job"
  wait "$job" || true
  gone_within_s 10
  grep -q 'failures="1"' out.xml
  grep -q 'did not come to its end' out.xml
  run -0 mpi 2 car_stress --cycles 120 --calls-per-cycle 1 --max-bytes 16K --junit out.xml
  python3 - <<'PY'
import xml.etree.ElementTree as xml
suite = xml.parse("out.xml").getroot().find("testsuite")
cases = suite.findall("testcase")
assert int(suite.get("tests")) == len(cases) == 3, len(cases)
assert suite.get("failures") == "0" and suite.get("errors") == "0"
assert abs(sum(float(c.get("time")) for c in cases) - float(suite.get("time"))) < 0.1
assert "120 cycles" in suite.find("system-out").text
PY
}
