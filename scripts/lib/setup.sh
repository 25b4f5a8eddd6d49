# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts: finds the repository, installs what is missing, builds.

LIBRUN_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Everything that librun needs, on Debian 12 and Ubuntu 24.04.
# shellcheck disable=SC2034  # used by the scripts that source this
LIBRUN_PACKAGES=(g++ cmake ninja-build pkg-config make python3 openmpi-bin libopenmpi-dev
  libcli11-dev libspdlog-dev libfmt-dev catch2 nlohmann-json3-dev bats)

say() { printf '# %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$1" >&2
  exit "${2:-1}"
}

# missing_packages NAME... : those that are not installed, from one look at dpkg's list.
missing_packages() {
  local installed
  # shellcheck disable=SC2016
  installed=$(dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' 2>/dev/null |
    sed -n 's/^\([^ :]*\)[^ ]* installed$/\1/p')
  local name
  for name in "$@"; do
    grep -qxF "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# install_packages NAME... : installs what is missing, or says what to type and ends with 3.
install_packages() {
  command -v dpkg-query >/dev/null || {
    say "no dpkg here: taking it that these are installed: $*"
    return 0
  }
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -eq 0 ] && return 0
  local become=()
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      become=(sudo -n)
    else
      say "these packages are missing; type this, then run me again:"
      printf 'sudo apt-get update && sudo apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 3
    fi
  fi
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  local install=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y
    -o DPkg::Lock::Timeout=300 --no-install-recommends "${missing[@]}")
  if ! "${install[@]}" >"$log" 2>&1; then
    # The lists may be old or absent.
    "${become[@]}" apt-get update >>"$log" 2>&1 || true
    "${install[@]}" >>"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      die "apt-get could not install ${missing[*]}: see $log" 3
    }
  fi
  rm -f "$log"
}

# find_nvcc : its path, or nothing.
find_nvcc() {
  local nvcc
  for nvcc in "${CUDACXX:-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc || true)" \
    /usr/local/cuda/bin/nvcc; do
    [ ! -x "$nvcc" ] || {
      printf '%s\n' "$nvcc"
      return
    }
  done
}

# count_gpus : how many a program may use here.
count_gpus() {
  local gpus visible id n=0
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
  if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
    IFS=, read -ra visible <<<"$CUDA_VISIBLE_DEVICES"
    for id in "${visible[@]}"; do
      [[ $id != -* ]] || break  # CUDA, too, stops at -1
      n=$((n + 1))
    done
    [ "$n" -ge "$gpus" ] || gpus=$n
  fi
  printf '%s\n' "$gpus"
}

# show_steps : ninja's count of steps, on one line of a terminal.
show_steps() {
  [ -t 2 ] || {
    cat >/dev/null
    return
  }
  local line
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    printf '\r# step %s of %s ' "${BASH_REMATCH[@]:1:2}" >&2
  done
  printf '\r\033[K' >&2
}

# build_preset PRESET [TARGET [CMAKE_OPTION...]] : configures on the first run and builds; what that says goes to a log.
build_preset() {
  local preset=$1
  local target=()
  [ $# -eq 1 ] || target=(--target "$2")
  local dir=$LIBRUN_ROOT/build/$preset
  mkdir -p "$dir"
  local log=$dir/build.log
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring build/$preset"
    (cd "$LIBRUN_ROOT" && cmake --preset "$preset" "${@:3}") >"$log" 2>&1 || {
      cat "$log" >&2
      die "cmake failed: see $log"
    }
  fi
  local built=$dir/.built${2:+_$2}
  [ -f "$built" ] || say "building ${2:-everything} in build/$preset (the first time takes minutes; build/$preset/build.log)"
  (set -o pipefail && cd "$LIBRUN_ROOT" &&
    cmake --build --preset "$preset" "${target[@]}" 2>&1 | tee "$log" | show_steps) || {
    grep -E -A6 'error|FAILED' "$log" | head -n 60 >&2
    die "the build failed: see $log"
  }
  touch "$built"
}

# Open MPI asks root to say twice that it is meant.
allow_root_mpi() {
  [ "$(id -u)" -eq 0 ] || return 0
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}
