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

@test "car_info: version, unknown option, unwritable file, one voice" {
  run -0 alone car_info --version
  [[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
  run -2 alone car_info --nonsense
  says nonsense
  run -3 alone car_info --json /no/such/folder/out.json
  run -0 mpi 3 car_info --version
  [ "$(grep -c -E '[0-9]+\.[0-9]+\.[0-9]+' <<<"$output")" -eq 1 ]
}
