#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The layers: runtime -> ipc -> kernels, apps and most tests on the public headers only; and no file
# above 400 lines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0

# forbid FOLDER PATTERN WHY : no #include in FOLDER matches PATTERN.
forbid() {
  local hits
  hits=$(git ls-files --cached --others --exclude-standard -- "$1" | grep -E '\.(h|hpp|cpp|c|cu)$' |
    xargs -r grep -nP "^ *# *include *[<\"]($2)" || true)
  [ -z "$hits" ] && return 0
  printf '%s\n' "$hits"
  printf 'error: %s: %s\n' "$1" "$3"
  failed=1
}

# unless NAME... : a pattern for every header but these.
unless() {
  local names
  names=$(IFS='|' && echo "$*")
  printf '(?!(%s)\.hpp)' "$names"
}

forbid src/kernels 'mpi\.h|spdlog/|fmt/|nlohmann/|ipc/|runtime/' 'the kernels use neither MPI, logs nor layers above'
forbid src/ipc 'spdlog/|fmt/|nlohmann/|runtime/' 'ipc uses neither logs nor layers above'
forbid src/ipc "kernels/$(unless device control_block unique_handle arena fault)" \
  'of the kernels, ipc uses the device seam only'
forbid src 'CLI/|catch2/' 'the library needs no library of the apps and tests'
forbid include 'cuda|spdlog/|fmt/|nlohmann/|kernels/|ipc/|runtime/' 'public headers stand alone'
forbid apps 'kernels/|ipc/|runtime/|spdlog/' 'the apps use the public headers'
for folder in mpi api cli death support; do
  forbid "tests/$folder" 'kernels/|ipc/|runtime/' 'only unit tests see src/'
done
forbid examples 'kernels/|ipc/|runtime/' 'the examples use the public headers'

long=$(git ls-files --cached --others --exclude-standard -- src include apps tests examples scripts cmake |
  xargs wc -l | awk '$2 != "total" && $1 > 400 {print $2 ": " $1 " lines"}')
if [ -n "$long" ]; then
  printf '%s\nerror: a file holds one idea in at most 400 lines\n' "$long"
  failed=1
fi
[ "$failed" -eq 0 ] && echo "includes and sizes: ok"
exit "$failed"
