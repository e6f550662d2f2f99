#!/usr/bin/env bash
# Makes what is shipped, in target/release-files: a static program for Linux in an archive, a Debian package, an image,
# a list of the parts (SBOM, CycloneDX), and the checksums of all. Runs from a clone.
#
#   docs/deploy/release.sh              with the profile dist, as it is shipped
#   PROFILE=release docs/deploy/release.sh   quicker, for trying this script
#
# Needs Rust, a C compiler with the static C library (Debian: libc6-dev), cargo-deb and cargo-cyclonedx (cargo install);
# the image needs buildah, and is left out without it, or with CENTAVO_RELEASE_IMAGE=left-out.
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
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\"" \
  cargo build --profile "$profile" --locked --target "$target" --bin centavo
program=${CARGO_TARGET_DIR:-target}/$target/$profile/centavo

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
