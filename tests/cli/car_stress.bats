#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# car_stress: every flag, every bad value, exit codes, output.
load helpers

@test "car_stress: help fits in 80 columns and has examples and exit codes" {
  run -0 alone car_stress --help
  says "mpirun -np 4 car_stress"
  says "Exit codes"
  for flag in --cycles --duration --preset --seed --cycle --first-cycle --calls-per-cycle \
    --max-bytes --comms --graphs --device --algo --checkpoint --kill-rank --fault \
    --expect-failure --timeout --keep-going --progress --json --json-lines --junit --list --info \
    --help-env --version; do
    says "$flag"
  done
  [ "$(awk '{ if (length($0) > 80) n++ } END { print n+0 }' <<<"$output")" -eq 0 ]
}

@test "car_stress: version, info and variables" {
  run -0 alone car_stress --version
  [[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
  run -0 alone car_stress --info
  says host
  run -0 alone car_stress --help-env
  says LIBRUN_TIMEOUT_MS
  run -0 alone car_stress --help-env markdown
  says '| `LIBRUN_TIMEOUT_MS` |'
  refused car_stress pdf --help-env pdf
}

@test "car_stress: each bad value is named and ends with 2" {
  refused car_stress "no number of cycles" --cycles 0
  refused car_stress many --cycles many
  refused car_stress soon --duration soon
  refused car_stress 0s --duration 0s
  refused car_stress weekend --preset weekend
  refused car_stress 0xyz --seed 0xyz
  refused car_stress -1 --seed -1
  refused car_stress first --cycle first
  refused car_stress "excludes --cycles" --cycle 3 --cycles 4
  refused car_stress last --first-cycle last
  refused car_stress -1 --calls-per-cycle -1
  refused car_stress 1K --max-bytes 1K
  refused car_stress 12Q --max-bytes 12Q
  refused car_stress 0 --comms 0
  refused car_stress 33 --graphs 33
  refused car_stress tpu --device tpu
  refused car_stress ring --algo ring
  refused car_stress real --checkpoint real
  refused car_stress "<rank>@<cycle>" --kill-rank 3
  refused car_stress "there are 1 ranks" --kill-rank 3@1
  refused car_stress never --timeout never
  refused car_stress sometimes --progress sometimes
  refused car_stress --nonsense --nonsense
  run -2 mpi 4 car_stress --cycles many
  times 1 many
}

@test "car_stress: the same seed plans the same, another seed another" {
  run -0 alone car_stress --list --cycles 5 --seed 3
  first=$output
  run -0 alone car_stress --list --cycles 5 --seed 0x3
  [ "$output" = "$first" ]
  run -0 alone car_stress --list --cycles 5 --seed 4
  [ "$output" != "$first" ]
}

@test "car_stress: some cycles with moved mappings, with every report" {
  run -0 mpi 4 car_stress --cycles 20 --checkpoint fake --max-bytes 256K --junit out.xml \
    --json out.json --progress never
  says moved
  valid_json out.json
  python3 -c "import xml.etree.ElementTree as e; assert e.parse('out.xml').getroot().tag.startswith('testsuite')"
}

@test "car_stress: one record a line" {
  mpi 2 car_stress --cycles 4 --max-bytes 64K --json-lines --progress never >lines
  [ "$(grep -c '^{' lines)" -ge 4 ]
  grep '^{' lines | while read -r line; do python3 -m json.tool <<<"$line" >/dev/null; done
}

@test "car_stress: one cycle, first cycle, duration, one algorithm, one rank" {
  run -0 mpi 2 car_stress --cycle 7 --max-bytes 64K
  run -0 mpi 2 car_stress --first-cycle 5 --cycles 2 --calls-per-cycle 3 --comms 1 --graphs 0
  run -0 mpi 2 car_stress --duration 1s --max-bytes 64K --algo two_shot --device host
  run -0 mpi 1 car_stress --cycles 3 --max-bytes 64K
}

@test "B47 wrong data ends with 1, names rank and element, and prints the command that repeats it" {
  run -1 mpi 4 car_stress --cycles 10 --max-bytes 64K --fault 'result@2#7:corrupt'
  says "rank 2"
  says "car_stress --seed 0x1 --cycle"
  replay=$(grep -o 'car_stress --seed 0x1 --cycle [0-9]*' <<<"$output" | head -n 1)
  cycle=${replay##* }
  LIBRUN_SELFTEST=0 run -1 mpi 4 car_stress --seed 0x1 --cycle "$cycle" --max-bytes 64K \
    --fault 'result@2:corrupt'
}

@test "car_stress: an injected failure, expected or not" {
  run -1 mpi 4 car_stress --cycles 3 --max-bytes 64K --fault 'resume_after_open@2:fail'
  says "resume_after_open"
  run -0 mpi 4 car_stress --cycles 3 --max-bytes 64K --fault 'resume_after_open@2:fail' \
    --expect-failure resume_after_open
  run -1 mpi 4 car_stress --cycles 3 --max-bytes 64K --expect-failure resume_after_open
}

@test "car_stress: a hang ends with 4 and names the rank" {
  LIBRUN_TIMEOUT_MS=60000 run -4 mpi 4 car_stress --cycles 3 --max-bytes 64K --timeout 2s \
    --fault 'before_publish@2#5:stop'
  says "rank 2 (process"
  says "is stopped"
}

@test "car_stress: a bad fault and a checkpoint that cannot be" {
  run mpi 2 car_stress --cycles 1 --fault nonsense
  [ "$status" -ne 0 ]
  says nonsense
  run -77 mpi 2 car_stress --cycles 1 --checkpoint driver
}

@test "car_stress: a killed rank is named" {
  run mpi 4 car_stress --cycles 10 --max-bytes 64K --kill-rank 2@3
  [ "$status" -ne 0 ]
}

@test "car_stress: files that cannot be written are found before the run" {
  run -3 mpi 2 car_stress --cycles 1 --junit /no/such/folder/out.xml
  says /no/such/folder
  run -3 mpi 2 car_stress --cycles 1 --json /no/such/folder/out.json
}
