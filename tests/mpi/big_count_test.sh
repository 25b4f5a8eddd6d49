#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B43: the test of more than 2^31 elements, where there is memory for two ranks of them.
# usage: big_count_test.sh SCENARIOS_TEST LAUNCHER...
program=$1
shift
needed_kib=$((6 << 20))
available_kib=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)
if [ "$available_kib" -lt $needed_kib ]; then
  echo "skipped: $((needed_kib >> 20)) GiB of memory are needed, $((available_kib >> 20)) GiB are there"
  exit 77
fi
exec "$@" "$program" "[big]"
