#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# car_bench: every flag, every bad value, exit codes, output.
load helpers

# The sizes in bytes of the rows of a table.
sizes() {
  sed 's/\x1b\[[0-9;]*m//g' < <(echo "$output") | awk '$1 ~ /^[0-9]+$/ && NF > 5 {print $1}' | tr '\n' ' '
}

fast=(-n 2 -w 1)

@test "car_bench: help fits in 80 columns, has examples and exit codes, and needs no launcher" {
  run -0 alone car_bench --help
  says "mpirun -np 8 car_bench"
  says "Exit codes"
  for flag in --minbytes --maxbytes --stepfactor --stepbytes --iters --warmup_iters --datatype \
    --op --algo --graph --check --average --output_file --csv --timeout --baseline \
    --suspend-every --tune --min-busbw --info --help-env --version --device --seed --quiet --progress; do
    says "$flag"
  done
  [ "$(awk '{ if (length($0) > 80) n++ } END { print n+0 }' <<<"$output")" -eq 0 ]
}

@test "car_bench: version, help-env and info" {
  run -0 alone car_bench --version
  [[ $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
  run -0 alone car_bench --help-env
  says LIBRUN_TIMEOUT_MS
  run -0 alone car_bench --info
  says host
  run -0 alone car_bench --info -J info.json
  valid_json info.json
}

@test "B45 without a launcher it runs as one rank and says so" {
  run -0 alone car_bench -b 1K -e 2K "${fast[@]}"
  says "1 rank: nothing to reduce; try mpirun -np 8 car_bench"
}

@test "B45 launched as eight by a launcher that MPI does not see" {
  for variable in OMPI_COMM_WORLD_SIZE=8 PMI_SIZE=8 SLURM_NTASKS=8; do
    run -3 env "$variable" "$BIN/car_bench" -b 1K -e 1K "${fast[@]}"
    says "launched as 8 ranks (${variable%=*}), but MPI sees 1"
  done
  run -0 env PMI_SIZE=8 LIBRUN_ALLOW_SINGLETONS=1 "$BIN/car_bench" -b 1K -e 1K "${fast[@]}"
}

@test "B45 eight ranks: one header, one table, 0 wrong" {
  run -0 mpi 8 car_bench -b 1K -e 4K "${fast[@]}"
  times 1 "busbw"
  says "0 OK"
  [ "$(sizes)" = "1024 2048 4096 " ]
}

@test "B47 sizes are read exactly" {
  run -0 mpi 2 car_bench -b 64M -e 70M -i 2M -n 1 -w 0
  [ "$(sizes)" = "67108864 69206016 71303168 73400320 " ]
  run -0 mpi 2 car_bench -b 1k -e 4K -f 2 "${fast[@]}"
  [ "$(sizes)" = "1024 2048 4096 " ]
}

@test "B47 each bad value is named, and ends with 2 before any set-up" {
  refused car_bench 12Q -b 12Q
  refused car_bench -5 -b -5
  refused car_bench 1e3x -b 1e3x
  refused car_bench 8K -b 8K -e 4K
  refused car_bench -f -f 1
  refused car_bench -f -f 0
  refused car_bench -n -n 0
  refused car_bench 3 -b 3 -e 64
  refused car_bench --nonsense --nonsense
  refused car_bench "-f and -i" -f 2 -i 1K
  refused car_bench -i -b 1K -e 4K -i 0
  refused car_bench quaternion -d quaternion
  refused car_bench xor -o xor
  refused car_bench ring --algo ring
  refused car_bench tpu --device tpu
  refused car_bench 7 -a 7
  refused car_bench "mpirun -np N" -g 2
  refused car_bench "mpirun -np N" -t 4
  refused car_bench nccl --baseline nccl
  refused car_bench baked --baseline baked
  LIBRUN_DEVICE=cuda refused car_bench "needs -G" --baseline baked
  LIBRUN_DEVICE=cuda refused car_bench suspend-every --baseline baked -G 10 --suspend-every 1
  refused car_bench floor --baseline roof
  LIBRUN_DEVICE=cuda refused car_bench host --baseline floor
  refused car_bench fast --min-busbw fast
  refused car_bench 0 -T 0
  refused car_bench "--tune runs all" --algo ll --tune=t.json
  refused car_bench "--tune needs a file" --tune=-
  refused car_bench "--tune=FILE" --tune t.json
  refused car_bench "a file of its own" --tune=t.json -J t.json
  refused car_bench "-N 0" --tune=t.json -N 0
  refused car_bench sometimes --progress sometimes
  refused car_bench yaml --format yaml
  refused car_bench 2 -R 2
  refused car_bench -1 -w -1
  refused car_bench -1 -c -1
  refused car_bench abc --seed abc
  refused car_bench abc --suspend-every abc
  refused car_bench pdf --help-env pdf
  refused car_bench 99999999999999999999 -e 99999999999999999999
}

@test "B47 a usage error is told once, by rank 0, and ends the job with 2" {
  run -2 mpi 4 car_bench -b 12Q
  times 1 12Q
}

@test "B47 a size that does not fit says what is needed and what there is" {
  run -3 mpi 2 car_bench -e 900G
  says 900G
  says available
}

@test "B47 wrong data shows in the row and as exit code 1" {
  LIBRUN_SELFTEST=0 LIBRUN_FAULT=result@1:corrupt run -1 mpi 2 car_bench -b 1K -e 1K "${fast[@]}"
  [ "$(sizes)" = "1024 " ]
  [[ $output != *" 0 OK"* ]]
  says "rank 1: 1024 bytes, float32, sum: element 0 is"
}

@test "a self-test that finds wrong data ends creation on all ranks" {
  LIBRUN_TIMEOUT_MS=5000 LIBRUN_FAULT=result@1:corrupt run -3 mpi 2 car_bench -b 1K -e 1K
  says "self-test"
  says "rank 1"
}

@test "car_bench: JSON is valid and holds the keys of nccl-tests" {
  run -0 mpi 4 car_bench -b 1K -e 4K "${fast[@]}" --baseline mpi,floor -J out.json
  valid_json out.json
  [ "$(json out.json 'len(d["results"])')" -eq 3 ]
  [ "$(json out.json 'd["out_of_bounds"]["count"]')" -eq 0 ]
  [ "$(json out.json 'sorted(set(["size","count","type","redop","out_of_place","in_place"]) - set(d["results"][0]))')" = "[]" ]
  [ "$(json out.json 'd["results"][0]["baseline"]["mpi"]["time"] > 0')" = True ]
  [ "$(json out.json 'd["results"][0]["baseline"]["floor"]["time"] > 0')" = True ]
  [ "$(json out.json 'all(r["out_of_place"]["nwrong"] == 0 for r in d["results"])')" = True ]
  [ "$(json out.json '"average_bus_bandwidth" in d')" = True ]
}

@test "car_bench: --tune writes tables beside others, LIBRUN_TUNING takes them, --stats tells" {
  run -0 mpi 2 car_bench -e 4K "${fast[@]}" --tune=tuning.json
  says "The fastest by size, 2 ranks, the best of 3 cycles"
  says "export LIBRUN_TUNING=$PWD/tuning.json"
  says "plain buffers: "
  says "registered buffers: "
  run -0 mpi 4 car_bench -e 1K "${fast[@]}" --tune=tuning.json -d all
  valid_json tuning.json
  [ "$(json tuning.json 'sum(t["world"] == 2 for t in d["tables"])')" -eq 2 ]
  [ "$(json tuning.json 'sum(t["world"] == 4 for t in d["tables"])')" -eq 8 ]
  run -0 env LIBRUN_TUNING=tuning.json "$BIN/car_bench" -b 8 -e 8
  cat >forced.json <<<'{"schema": "librun.tuning/1", "tables": [{"device": "host", "steps":
    [{"up_to_bytes": 1024, "algo": "two_shot"}, {"algo": "ll"}]}]}'
  LIBRUN_TUNING=forced.json run -0 mpi 2 car_bench -b 1K -e 2K "${fast[@]}" --stats -J out.json
  says two_shot
  [ "$(json out.json '[r["plan"]["algo"] for r in d["results"]]')" = "['two_shot', 'll']" ]
}

@test "car_bench: --tune loses nothing of a file that it cannot use" {
  echo "dear diary" >diary
  run -3 mpi 2 car_bench -e 1K "${fast[@]}" --tune=diary
  says "diary holds something else"
  [ "$(cat diary)" = "dear diary" ]
  run -3 mpi 2 car_bench -e 1K "${fast[@]}" --tune=/nowhere/tuning.json
  says /nowhere/tuning.json
  LIBRUN_TUNING=diary run -3 mpi 2 car_bench -b 1K -e 1K "${fast[@]}"
  says "LIBRUN_TUNING: diary: is no JSON"
}

@test "car_bench: JSON to standard output has nothing else in it, and no secrets" {
  SECRET_TOKEN=hunter2 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" -J - >out.json
  valid_json out.json
  run -1 grep hunter2 out.json
}

@test "car_bench: one JSON record a line" {
  run -0 mpi 2 car_bench -b 1K -e 4K "${fast[@]}" -J lines.json --json-lines
  [ "$(wc -l <lines.json)" -ge 3 ]
  while read -r line; do python3 -m json.tool <<<"$line" >/dev/null; done <lines.json
}

@test "car_bench: CSV has a head and one row for each place" {
  run -0 mpi 2 car_bench -b 1K -e 2K "${fast[@]}" --csv out.csv
  [ "$(wc -l <out.csv)" -eq 5 ]
  [ "$(awk -F, '{print NF}' out.csv | sort -u | wc -l)" -eq 1 ]
}

@test "car_bench: files that cannot be written are found before the run" {
  run -3 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" -J /no/such/folder/out.json
  says /no/such/folder
  [[ $output != *busbw* ]]
  run -3 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" --csv /no/such/folder/out.csv
}

@test "car_bench: a full disk is an error" {
  [ -c /dev/full ] || skip "no /dev/full"
  ln -s /dev/full out.json
  run -3 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" -J out.json
  says "No space left"
  [ -L out.json ]
}

@test "car_bench: all types and all operations" {
  run -0 mpi 2 car_bench -b 64 -e 128 -d all -o all -n 1 -w 0 -J out.json
  [ "$(json out.json 'len(set((r["type"], r["redop"]) for r in d["results"]))')" -eq 40 ]
  [ "$(json out.json 'd["out_of_bounds"]["count"]')" -eq 0 ]
}

@test "car_bench: every algorithm, registered, unaligned, as a graph, aggregated" {
  run -0 mpi 2 car_bench -b 1K -e 64K -f 8 --algo all -R 1 "${fast[@]}"
  says "0 OK"
  run -0 mpi 2 car_bench -b 1K -e 8K -f 8 -u "${fast[@]}"
  says "0 OK"
  run -0 mpi 2 car_bench -b 1K -e 8K -f 8 -G 3 "${fast[@]}"
  says "0 OK"
  run -0 mpi 2 car_bench -b 1K -e 8K -f 8 -m 4 -N 2 "${fast[@]}"
  [ "$(sizes)" = "1024 8192 1024 8192 " ]
}

@test "car_bench: suspend and resume are timed by phase" {
  run -0 mpi 4 car_bench -b 1K -e 4K "${fast[@]}" --suspend-every 1
  says "0 OK"
  for phase in close release connect prove; do says "$phase"; done
}

@test "car_bench: averages, statistics, timestamps, quiet, formats, list" {
  for average in 0 1 2 3; do
    run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" -a $average
  done
  run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" --stats -S
  says p95
  run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" -q
  [[ $output != *busbw* ]]
  run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" --format osu
  says "Avg Latency(us)"
  run -0 alone car_bench -b 1K -e 4K --list
  [ "${#lines[@]}" -eq 3 ]
  run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" --seed 7 -c 2 --progress never --device host
}

@test "car_bench: a bandwidth that is not reached ends with 1" {
  run -1 mpi 2 car_bench -b 1K -e 1K "${fast[@]}" --min-busbw 100000
  says min-busbw
  run -0 mpi 2 car_bench -b 1M -e 1M "${fast[@]}" --min-busbw 0.000001
}

@test "car_bench: a hang ends with 4 and says where" {
  LIBRUN_SELFTEST=0 LIBRUN_FAULT=before_publish@1#3:stop run -4 mpi 2 car_bench -b 1K -e 1K -T 2
  says "1024 bytes"
}

@test "car_bench: a device that is not there ends with 3" {
  run -0 alone car_info --json info.json
  if LIBRUN_DEVICE=cuda alone car_bench -b 1K -e 1K "${fast[@]}"; then skip "CUDA is here"; fi
  run -3 mpi 2 car_bench -b 1K -e 1K --device cuda
  says CUDA
}

@test "a bad variable is named, with what it takes" {
  LIBRUN_ALGO=fastest run -3 mpi 2 car_bench -b 1K -e 1K "${fast[@]}"
  says LIBRUN_ALGO
  says fastest
  says two_shot
}

@test "an unknown variable earns one warning with a suggestion" {
  LIBRUN_LOG=warn LIBRUN_TIMEOUT_MSS=5 run -0 mpi 2 car_bench -b 1K -e 1K "${fast[@]}"
  times 1 LIBRUN_TIMEOUT_MSS
  says "maybe LIBRUN_TIMEOUT_MS was meant"
}
