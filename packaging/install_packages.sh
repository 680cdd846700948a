#!/bin/sh
# Usage: install_packages.sh build test lint
# Installs what debian-packages.txt lists for these purposes, if it is missing. Asks only dpkg when
# nothing is. Needs root or sudo only to install.
set -eu
list=$(dirname "$0")/debian-packages.txt

# A package whose service cannot start stays half configured, with its files in place: good enough.
missing() {
  for purpose in "$@"; do
    sed 's/#.*//' "$list" | while read -r name for _; do
      [ "$for" = "$purpose" ] || continue
      case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) in
        installed | unpacked | half-configured | triggers-*) ;;
        *) echo "$name" ;;
      esac
    done
  done
}

wanted=$(missing "$@")
[ -n "$wanted" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then as_root=; else as_root=sudo; fi
echo "Installing:" $wanted
$as_root apt-get update -q || echo "apt-get update failed; trying with the lists that are there" >&2
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends $wanted || failed=$?

case " $(echo $wanted) " in
  *" nginx-light "*)
    # Debian starts an nginx on port 80; the tests start their own.
    $as_root update-rc.d nginx disable >/dev/null 2>&1 || true
    $as_root invoke-rc.d nginx stop >/dev/null 2>&1 || true
    ;;
esac

still=$(missing "$@")
if [ -n "$still" ]; then
  echo "Could not install:" $still >&2
  exit "${failed:-1}"
fi
