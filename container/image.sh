#!/usr/bin/env bash
# Build the image suiro: wheels here, then the Dockerfile, which needs no network.
#   container/image.sh PYTHON       a Python 3.11 with pip, as in .venv
# BASE and BUILD_BASE name other base images; without them suiro-base is made by debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
rm -rf build/wheels
"$python" -m pip wheel --quiet --wheel-dir build/wheels --constraint constraints.txt .

if [ -z "${BASE:-}" ]; then
  docker image inspect suiro-base suiro-build-base >/dev/null 2>&1 || container/base.sh
  BASE=suiro-base BUILD_BASE=suiro-build-base
fi
docker build --quiet --tag suiro:latest \
  --build-arg BASE="$BASE" --build-arg BUILD_BASE="${BUILD_BASE:-$BASE}" .
docker image inspect --format '{{.RepoTags}} {{.Size}} bytes' suiro:latest
