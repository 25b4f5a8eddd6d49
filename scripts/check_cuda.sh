#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where there is a CUDA toolkit: compiles all device code with warnings as errors, and checks what can
# be checked without a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/setup.sh
nvcc=$(find_nvcc)
if [ -z "$nvcc" ]; then
  echo "cuda: no toolkit here: nothing to compile"
  exit 0
fi
build_preset cuda-ci
echo "cuda: built with $("$nvcc" --version | sed -n 's/.*release \([^,]*\).*/\1/p') in $SECONDS s"
build=build/cuda-ci
library=$build/src/librun.so
scripts/check_symbols.sh "$library"

# One binary runs everywhere: the driver is looked up at run time.
for file in "$library" "$build"/bin/car_{info,bench,stress,checkpoint} \
  "$build/tests/mpi/cuda_test"; do
  [ -f "$file" ] || continue
  if readelf -d "$file" | grep -E 'NEEDED.*lib(cuda|cudart|nccl)[.]'; then
    die "$file needs a library of CUDA"
  fi
done

info=$("$build/bin/car_info" | grep '^backend  *cuda: ') ||
  die "car_info says nothing of the cuda backend"
echo "$info"
if [ "$(count_gpus)" -gt 0 ]; then
  echo "cuda: there is a GPU here: scripts/gpu_test.sh tests on it"
  exit 0
fi
[[ $info == *"there is no CUDA device ("* ]] || die "car_info does not say why CUDA is not usable"
"$build/tests/unit/cuda_memory_test"
"$build/tests/unit/checkpoint_driver_test"
allow_root_mpi
# auto is the host here. The example leaves the choice to the library.
export LIBRUN_DEVICE=auto
mpirun --oversubscribe --timeout 120 -np 2 "$build/tests/mpi/all_reduce_test"
mpirun --oversubscribe --timeout 120 -np 2 "$build/examples/cg"
