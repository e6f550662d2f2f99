#!/usr/bin/env bash
# Makes what is shipped, in target/release-files: a static program for Linux in an archive, a Debian package, an image,
# a list of the parts (SBOM, CycloneDX), and the checksums of all. Runs from a clone.
#
#   docs/deploy/release.sh              with the profile dist, as it is shipped
#   PROFILE=release docs/deploy/release.sh   quicker, for trying this script
#
# Needs Rust, a C compiler with the static C library (Debian: libc6-dev), cargo-deb and cargo-cyclonedx (cargo install).
# The image needs buildah, and is left out without it, or with CENTAVO_RELEASE_IMAGE=left-out. Without llvm-profdata (rustup
# component add llvm-tools, or LLVM_PROFDATA=llvm-profdata-19) the program is optimized without a profile, and slower.
# tests/conformance/release.rs looks at all of them.
set -euo pipefail
cd "$(dirname "$0")/../.."

for program in cargo-deb cargo-cyclonedx; do
  command -v "$program" > /dev/null || { echo "$program is missing: cargo install cargo-deb cargo-cyclonedx" >&2; exit 1; }
done

profile=${PROFILE:-dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
target=$(rustc -vV | sed -n 's/^host: //p')
name=centavo-$version-${target%%-*}-linux
files=target/release-files
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$files" && mkdir -p "$files"

# The C library is part of the program. The random bytes come from the kernel by name: a static program cannot look the
# function up, and an image has no /dev.
build() {
  RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\" ${1:-}" \
    cargo build --profile "$profile" --locked --target "$target" --bin centavo
}
program=${CARGO_TARGET_DIR:-target}/$target/$profile/centavo

# Builds the program twice: a demo of the first one writes down how often each part of the code runs, and the second one is
# optimized by that.
build_by_profile() {
  local counts=${CARGO_TARGET_DIR:-$PWD/target}/profile
  rm -rf "$counts" && mkdir -p "$counts"
  build "-C profile-generate"
  export LLVM_PROFILE_FILE="$counts/%p.profraw"
  "$program" demo --data "$counts/data" --charges 100000 --listen 127.0.0.1:0 --ops-listen 127.0.0.1:0 >"$counts/demo" &
  until grep --quiet '^Serving' "$counts/demo"; do
    kill -0 $! || exit 1
    sleep 1
  done
  kill $! && wait $!
  "$program" verify --data "$counts/data" >"$counts/verify"
  unset LLVM_PROFILE_FILE
  if "$profdata" merge --output "$counts/profdata" "$counts"/*.profraw; then
    build "-C profile-use=$counts/profdata"
  else
    echo "optimized without a profile: $profdata does not read what this rustc writes"
    build
  fi
}

profdata=${LLVM_PROFDATA:-$(rustc --print sysroot)/lib/rustlib/$target/bin/llvm-profdata}
if [ "$profile" != dist ]; then
  build
elif command -v "$profdata" > /dev/null; then
  build_by_profile
else
  echo "optimized without a profile: llvm-profdata is missing (rustup component add llvm-tools, or name one in LLVM_PROFDATA)"
  build
fi

mkdir -p "$files/$name/deploy"
cp "$program" "$files/$name/centavo"
strip "$files/$name/centavo"
# Made by the program that is shipped.
mkdir "$files/$name/completions"
"$files/$name/centavo" man --out "$files/$name/man"
for shell in bash:centavo.bash zsh:_centavo fish:centavo.fish; do
  "$files/$name/centavo" completions "${shell%%:*}" > "$files/$name/completions/${shell##*:}"
done
cp README.md CHANGELOG.md LICENSE* "$files/$name/"
cp -r docs/deploy/*.{service,timer,toml,yml,json,html,md,conf} docs/deploy/{centavo-setup,debian} "$files/$name/deploy/"
# The pages that the README leads to.
cp -r docs "$files/$name/"
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --directory "$files" "$name" |
  gzip --no-name > "$files/$name.tar.gz"

cp -r "$files/$name"/{centavo,man,completions} "$files/"
cargo deb --no-build --strip --locked --profile "$profile" --target "$target" --output "$files/"

cargo cyclonedx --format json --target "$target" --override-filename "$name.cdx"
mv "$name.cdx.json" "$files/"
find ledger actors crates tests -name "$name.cdx.json" -delete

if [ "${CENTAVO_RELEASE_IMAGE:-}" != left-out ] && command -v buildah > /dev/null; then
  # Names are resolved by the program itself; webhooks over https trust these certificates.
  cp /etc/ssl/certs/ca-certificates.crt "$files/"
  mkdir "$files/data"
  buildah build --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --file docs/deploy/Dockerfile --tag "centavo:$version" "$files"
  buildah push --quiet "centavo:$version" "oci-archive:$files/$name.oci.tar:centavo:$version"
  rm -r "$files/ca-certificates.crt" "$files/data"
else
  echo "no image: buildah is missing, or it is left out"
fi

rm -r "${files:?}/$name" "$files"/{centavo,man,completions}
(cd "$files" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
