#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: consumer_test.sh BUILD_DIR [MPIRUN...]
# Installs to a temporary prefix, builds both examples against it, with CMake and with pkg-config,
# and runs them.
set -euo pipefail
build=$1
shift
[ $# -gt 0 ] || set -- mpirun --oversubscribe -np 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/log" || {
  cat "$work/log"
  exit 1
}
libdir=$(dirname "$(find "$work/prefix" -name librun.so)")

cmake -S "$root/examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log"
cmake --build "$work/cmake" >>"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}

# A project that knows no C, as many are.
mkdir "$work/cxx"
cp "$root/examples/cg.cpp" "$root/examples/poisson.h" "$work/cxx"
cat >"$work/cxx/CMakeLists.txt" <<'EOT'
cmake_minimum_required(VERSION 3.25)
project(cxx_only CXX)
find_package(librun 0.1 REQUIRED)
add_executable(cg cg.cpp)
target_compile_features(cg PRIVATE cxx_std_17)
target_link_libraries(cg PRIVATE librun::librun)
EOT
{ cmake -S "$work/cxx" -B "$work/cxx/build" -DCMAKE_PREFIX_PATH="$work/prefix" &&
  cmake --build "$work/cxx/build"; } >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}

cp -r "$root/examples" "$work/make"
make -C "$work/make" PKG_CONFIG_PATH="$libdir/pkgconfig" >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}

for program in "$work"/{cmake,make}/{cg,cg_c} "$work/cxx/build/cg"; do
  "$@" "$program" | tee "$work/out"
  grep -q ', equal$' "$work/out"
done

# A job that gives way: asked once by a signal to rank 0, and told to go on. A fifth of a second of work:
# on a busy machine it takes a hundred times that.
"$@" "$work/cmake/preemptible_cg" 20 >"$work/out" &
job=$!
await() { # TEXT : in the output of the job
  for ((i = 0; i < 1500; i++)); do
    grep -q "$1" "$work/out" && return
    sleep 0.02
  done
  echo "preemptible_cg did not say \"$1\":"
  cat "$work/out"
  exit 1
}
await 'rank 0 is process'
pid=$(sed -n 's/rank 0 is process \([0-9]*\):.*/\1/p' "$work/out")
kill -USR1 "$pid"
await 'suspended before'
kill -USR2 "$pid"
wait "$job"
cat "$work/out"
grep -q '^20 solves, 1 suspends, .*, equal$' "$work/out"
