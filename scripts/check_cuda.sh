#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where there is a CUDA toolkit: compiles every .cu file of src/, for want of a GPU without running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- 'src/*.cu')
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ "${#sources[@]}" -eq 0 ] || [ ! -x "$nvcc" ]; then
  echo "cuda: ${#sources[@]} sources, $([ -x "$nvcc" ] && echo a || echo no) toolkit: nothing to compile"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in "${sources[@]}"; do
  echo "nvcc $source"
  "$nvcc" -std=c++17 -arch=sm_80 -Werror all-warnings -Iinclude -Isrc -c "$source" -o "$work/a.o"
done
