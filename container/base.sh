#!/usr/bin/env bash
# Make the images suiro-base (Debian and Python) and suiro-build-base (venv as well) without a registry.
#   container/base.sh [FOLDER]      where the tree is made; it is removed at the end
# Needs root, debootstrap and a running engine.
set -euo pipefail
tree=$(mktemp -d "${1:-/var/tmp}/suiro-base.XXXXXX")
trap 'rm -rf "$tree"' EXIT

debootstrap --variant=minbase --include=python3,ca-certificates bookworm "$tree" >"$tree.log" \
  || { tail -20 "$tree.log"; exit 1; }
rm -f "$tree.log"

pack() { # what apt and the manuals leave behind is no part of an image
  tar --create --directory "$tree" --exclude=./var/cache/apt/* --exclude=./var/lib/apt/lists/* \
    --exclude=./usr/share/doc/* --exclude=./usr/share/man/* --exclude=./usr/share/locale/* . \
    | docker import - "$1"
}

pack suiro-base
chroot "$tree" apt-get install --yes --quiet --no-install-recommends python3-venv >/dev/null
pack suiro-build-base
