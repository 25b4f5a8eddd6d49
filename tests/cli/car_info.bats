#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# car_info: text, JSON, variables.
load helpers

@test "car_info: text without a launcher" {
  run -0 alone car_info
  for word in host MPI LIBRUN_TIMEOUT_MS; do says "$word"; done
}

@test "car_info: JSON to standard output and to a file is the same, and valid" {
  alone car_info --json >out.json
  valid_json out.json
  alone car_info --json file.json
  valid_json file.json
}

@test "car_info: settings show where a value comes from, and a bad one is no reason to fail" {
  LIBRUN_ARENA_BYTES=1M alone car_info --json >out.json
  grep -q '"environment"' out.json
  LIBRUN_ARENA_BYTES=12Q run -0 alone car_info
  says 12Q
}

@test "car_info: the variables, as text and markdown" {
  run -0 alone car_info --help-env
  says LIBRUN_ARENA_BYTES
  run -0 alone car_info --help-env markdown
  says "|"
  run -2 alone car_info --help-env pdf
  says pdf
}

@test "car_info: --calibrate measures between ranks, and what one rank has alone" {
  run -0 mpi 2 car_info --calibrate
  says "2 ranks on host"
  says "a flag, from rank 0 until rank 1 sees it"
  says "writes to the next rank"
  run -0 mpi 3 car_info --calibrate --json out.json
  valid_json out.json
  [ "$(json out.json 'd["schema"]')" = librun.calibration/1 ]
  [ "$(json out.json 'sorted({r["what"] for r in d["readings"]})')" = \
    "['dependent_load', 'flag_one_way', 'own_copy_rate', 'read_rate', 'write_rate']" ]
  [ "$(json out.json 'all(r["value"] > 0 for r in d["readings"])')" = True ]
  run -0 alone car_info --calibrate
  [[ $output != *"next rank"* ]]
  says "a copy within own memory"
}

@test "car_info: --calibrate where it cannot run says why, once" {
  run -3 mpi 2 car_info --calibrate --json /no/such/folder/out.json
  times 1 /no/such/folder/out.json
  LIBRUN_FAULT=create_before_open@1:fail run -3 mpi 2 car_info --calibrate
  says "injected fault at create_before_open"
  run -2 alone car_info --calibrate --device tpu
  says tpu
}

@test "car_info: version, unknown option, unwritable file, one voice" {
  run -0 alone car_info --version
  [[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
  run -2 alone car_info --nonsense
  says nonsense
  run -3 alone car_info --json /no/such/folder/out.json
  run -0 mpi 3 car_info --version
  [ "$(grep -c -E '[0-9]+\.[0-9]+\.[0-9]+' <<<"$output")" -eq 1 ]
}
