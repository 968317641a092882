#!/usr/bin/env bash
# Say in one line why containers cannot be used here, or nothing. `--install` takes what is missing
# from Debian first, and starts the engine.
set -uo pipefail
if [ "${1:-}" = --install ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { command -v dockerd && command -v docker-compose && command -v debootstrap; } >/dev/null \
    || { apt-get update --quiet && apt-get install --yes --quiet docker.io docker-compose debootstrap; } >/dev/null 2>&1
  if ! docker info >/dev/null 2>&1 && command -v dockerd >/dev/null; then
    # Without rules of its own: its FORWARD policy would cut off every other bridge of the machine.
    setsid dockerd --iptables=false --ip6tables=false --ip-forward=false >"${TMPDIR:-/tmp}/dockerd.log" 2>&1 </dev/null &
    for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 0.5; done
  fi
fi
command -v docker >/dev/null || { echo "there is no docker: install Debian's docker.io"; exit 1; }
command -v docker-compose >/dev/null || { echo "there is no docker-compose: install Debian's package"; exit 1; }
docker info >/dev/null 2>&1 || { echo "the engine does not answer: start dockerd"; exit 1; }
