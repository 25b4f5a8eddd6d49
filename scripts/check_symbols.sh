#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: check_symbols.sh librun.so
# What the library exports is what its header declares, and nothing else.
set -euo pipefail
library=${1:?usage: check_symbols.sh librun.so}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
declared=$(sed -n 's/^LIBRUN_API .*[ *]\(librun_[a-z_]*\)(.*/\1/p' include/librun/librun.h | LC_ALL=C sort)
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | LC_ALL=C sort)
listed=$(LC_ALL=C sort tests/api/exported_symbols.txt)
diff <(echo "$listed") <(echo "$declared") || {
  echo "error: librun.h and tests/api/exported_symbols.txt differ"
  exit 1
}
diff <(echo "$listed") <(echo "$exported") || {
  echo "error: $library does not export what tests/api/exported_symbols.txt lists"
  exit 1
}
echo "symbols: $(wc -l <<<"$exported") exported, as listed"
