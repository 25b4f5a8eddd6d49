#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The plots of what car_bench and car_info wrote.
load helpers

scripts=$BATS_TEST_DIRNAME/../../scripts

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  python3 -c 'import matplotlib' 2>/dev/null || command -v gnuplot >/dev/null ||
    skip "neither matplotlib nor gnuplot is installed"
}

plot() { python3 "$scripts/plot_bench.py" "$@"; }

# calibration FILE RANKS SHARED: a flag takes 200 ns, a load 100, a launch 700, a copy 100 GB/s to 1 KiB, 50 beyond.
calibration() {
  cat >"$1" <<JSON
{"schema": "librun.calibration/1", "ranks": $2, "shared": $3, "readings": [
  {"what": "flag_one_way", "value": 200}, {"what": "dependent_load", "value": 100, "bytes": 1024},
  {"what": "graph_node", "value": 0.9}, {"what": "graph_node_early", "value": 0.7},
  {"what": "write_rate", "value": 10, "bytes": 1024}, {"what": "own_copy_rate", "value": 30, "bytes": 1024},
  {"what": "own_copy_rate", "value": 100, "bytes": 1024}, {"what": "own_copy_rate", "value": 50, "bytes": 8192}]}
JSON
}

# floor FILE RANKS SIZE: the time of the floor in ns, and the bandwidth in MB/s.
floor() {
  PYTHONPATH=$scripts python3 - "$@" <<'PYTHON'
import json, sys, plot_bench
(_, time_us, bus_gbps), = plot_bench.floor_of(json.load(open(sys.argv[1])), int(sys.argv[2]), [int(sys.argv[3])])
print(round(time_us * 1e3), round(bus_gbps * 1e3))
PYTHON
}

@test "plot_bench.py: times, suspends and the floor, of one file and of two" {
  run -0 mpi 2 car_bench -b 8 -e 4K -f 8 -n 5 -w 1 -N 1 --algo all --suspend-every 1 -J out.json
  run -0 mpi 2 car_info --calibrate --json here.json
  run -0 plot out.json --floor here.json -o out.svg
  [ "$output" = out.svg ]
  python3 -c 'import xml.etree.ElementTree as x; x.parse("out.svg")'
  cp out.json other.json
  run -0 plot out.json other.json --place in -o both.png
  [ "$(head -c 4 both.png | tail -c 3)" = PNG ]
}

@test "plot_bench.py: the floor is a launch, a load, a flag, and each byte once" {
  calibration shared.json 4 true
  [ "$(floor shared.json 4 1000)" = "1010 1485" ]
  [ "$(floor shared.json 4 5000)" = "1100 6818" ]
  [ "$(floor shared.json 4 50000)" = "2000 37500" ]
  calibration apart.json 4 false
  [ "$(floor apart.json 4 1000)" = "1150 1304" ]
}

@test "plot_bench.py: what it cannot draw is told, and nothing is written" {
  run -0 mpi 2 car_bench -b 8 -e 8 -n 2 -w 1 -N 1 -J out.json
  calibration four.json 4 true
  run -3 plot out.json --floor four.json -o no.svg
  says "four.json is of 4 ranks, the results are of 2"
  run -3 plot out.json --floor out.json -o no.svg
  says "out.json is not written by car_info --calibrate"
  run -3 plot four.json -o no.svg
  says "four.json is not written by car_bench"
  run -3 plot missing.json -o no.svg
  says "cannot read missing.json"
  run -2 plot out.json -o no.pdf
  says ".svg or .png"
  [ ! -e no.svg ]
}
