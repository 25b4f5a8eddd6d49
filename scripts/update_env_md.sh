#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: update_env_md.sh [--check] CAR_INFO
# Writes docs/env.md from the settings table, or checks that it is up to date.
set -euo pipefail
check=0
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
car_info=$(realpath "${1:?usage: update_env_md.sh [--check] CAR_INFO}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fresh=$(env -i PATH="$PATH" HOME="${HOME:-/}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  "$car_info" --help-env=markdown)
if [ "$check" -eq 0 ]; then
  printf '%s\n' "$fresh" >docs/env.md
elif ! diff <(printf '%s\n' "$fresh") docs/env.md; then
  echo "error: docs/env.md is old: run scripts/update_env_md.sh build/host/bin/car_info"
  exit 1
fi
