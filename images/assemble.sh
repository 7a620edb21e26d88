#!/bin/sh
# Puts the files of an image into a folder: programs, the libraries that they need, and nothing else; no shell either.
#
#   images/assemble.sh proxyv2|pilot FOLDER
#
# Takes them from this checkout, after `make build`, and from this machine. Dockerfiles run it, and so do tests.
set -eu
image=${1:?proxyv2 or pilot} tree=${2:?folder}
checkout=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)

fail() { echo "assemble: $*" >&2; exit 1; }

# Files of this machine that are in the image.
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT

# A file under the same path as here, or under the one that is given.
put() { mkdir -p "$tree$(dirname "${2:-$1}")" && cp -L "$1" "$tree${2:-$1}" && realpath "$1" >>"$sources"; }

# A program, and all libraries that the loader finds for it.
put_program() {
  [ -x "$1" ] || fail "$1 is missing"
  put "$@"
  ldd "$1" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x.*$/\1/p' | while read -r library; do
    [ -e "$tree$library" ] || put "$library"
  done
}

# A bundle of ours, run by node with a flag. The first line of a program takes one argument; others are in NODE_OPTIONS of the
# image. So nothing else runs on the way.
put_bundle() {
  # Some have further parts, and compiled code.
  for part in "$checkout/dist/$1".*; do put "$part" "/usr/local/lib/mizzen/${part##*/}"; done
  cat >"$tree/usr/local/bin/$1" <<EOF
#!/usr/local/bin/node $2
process.argv.splice(1, 1, "launcher", "/usr/local/lib/mizzen/$1.cjs");
require("/usr/local/lib/mizzen/launcher.cjs");
EOF
  chmod 755 "$tree/usr/local/bin/$1"
}

put_common() {
  mkdir -p "$tree/usr/bin" "$tree/usr/sbin" "$tree/usr/lib" "$tree/usr/lib64" "$tree/usr/local/bin"
  for folder in bin sbin lib lib64; do ln -sfn "usr/$folder" "$tree/$folder"; done
  # Where Kubernetes mounts: a root that is read-only cannot make them.
  for folder in dev proc sys tmp etc/istio/proxy etc/istio/config etc/istio/pod etc/istio/extensions var/lib/istio/data \
    var/run/secrets/istio var/run/secrets/tokens var/run/secrets/istio-dns var/run/secrets/istiod/ca var/run/secrets/istiod/tls \
    var/run/secrets/remote var/run/secrets/credential-uds var/run/secrets/workload-spiffe-uds \
    var/run/secrets/workload-spiffe-credentials etc/cacerts; do
    mkdir -p "$tree/$folder"
  done
  chmod 1777 "$tree/tmp"
  echo 'istio-proxy:x:1337:1337::/:/nonexistent' >"$tree/etc/passwd"
  echo 'istio-proxy:x:1337:' >"$tree/etc/group"
  echo 'hosts: files dns' >"$tree/etc/nsswitch.conf"
  put /etc/ssl/certs/ca-certificates.crt
  put_program "$checkout/node_modules/.bin/node" /usr/local/bin/node
  put "$checkout/dist/launcher.cjs" /usr/local/lib/mizzen/launcher.cjs
}

# What the machine trusts, under the hashes by which OpenSSL finds one without reading the others.
put_hashed_roots() {
  (cd / && find -L etc/ssl/certs -name '????????.[0-9]' | tar -chf - -T -) | tar -xf - -C "$tree"
}

# The rules of capture, by the kernel's newer and its older tables, and the routes that some modes need.
put_iptables() {
  put_program /usr/sbin/xtables-nft-multi
  put_program /usr/sbin/xtables-legacy-multi
  for table in iptables ip6tables; do
    for command in "" -save -restore; do
      ln -sf xtables-nft-multi "$tree/usr/sbin/$table$command"
      ln -sf xtables-nft-multi "$tree/usr/sbin/$table-nft$command"
      ln -sf xtables-legacy-multi "$tree/usr/sbin/$table-legacy$command"
    done
  done
  mkdir -p "$tree/usr/lib"
  find /usr/lib -path '*/xtables/*.so' >>"$sources"
  (cd / && find usr/lib -path '*/xtables/*.so' | tar -cf - -T -) | tar -xf - -C "$tree"
  put_program "$(command -v ip)" /usr/sbin/ip
  put_program /usr/sbin/nft
}

# Records the Debian packages that the files come from in the place where image scanners and scripts/sbom.ts look.
put_packages() {
  command -v dpkg-query >/dev/null || return 0
  mkdir -p "$tree/var/lib/dpkg/status.d"
  # A script of Debian's makes the file of roots. Some packages own /lib/x, which is the same file as /usr/lib/x.
  { sed 'p; s|^/usr/|/|' "$sources"; echo /usr/sbin/update-ca-certificates; } | sort -u | xargs dpkg-query -S 2>/dev/null |
    sed -n '/^diversion/d; s/: \/.*//p' | sort -u | while read -r package; do
    dpkg-query -s "$package" >"$tree/var/lib/dpkg/status.d/${package%%:*}"
  done
}

[ -f "$checkout/dist/launcher.cjs" ] || fail "nothing is built: run \"make build\" in $checkout"
mkdir -p "$tree"
[ -z "$(ls -A "$tree")" ] || fail "$tree is not empty"
put_common
case $image in
  proxyv2)
    put_program "$checkout/.cache/envoy" "/usr/local/bin/${SIDECAR:-envoy}"
    put_bundle pilot-agent --use-openssl-ca
    put_hashed_roots
    put_iptables
    ;;
  pilot)
    put_bundle pilot-discovery --no-memory-reducer
    put "$checkout/dist/read-worker.cjs" /usr/local/lib/mizzen/read-worker.cjs
    ;;
  *) fail "there is no image \"$image\": proxyv2 or pilot" ;;
esac
put_packages
