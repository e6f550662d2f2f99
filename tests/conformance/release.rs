//! What `docs/deploy/release.sh` made, in the folder `CENTAVO_RELEASE_FILES`: checksums, archive,
//! Debian package and list of parts are whole; dpkg installs, upgrades and removes the package in a
//! root of its own; and the image serves, reads its volume again and makes a backup as its user.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::commands::blocks_of;
use crate::tool;

const PATIENCE: Duration = Duration::from_secs(120);

/// `None` if the script has not run.
fn files() -> Option<PathBuf> {
    let folder = std::env::var_os("CENTAVO_RELEASE_FILES").map(|folder| std::path::absolute(folder).unwrap());
    if folder.is_none() {
        let missing = "run docs/deploy/release.sh, and name target/release-files in CENTAVO_RELEASE_FILES";
        assert!(std::env::var("CENTAVO_CONFORMANCE").as_deref() != Ok("required"), "{missing}");
        println!("Nothing was tested: {missing}");
    }
    folder
}

/// The one file with this ending.
fn file(folder: &Path, ending: &str) -> PathBuf {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = all.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
    let [file] = &found[..] else { panic!("{ending}: {found:?}") };
    file.clone()
}

fn said(mut command: Command, arguments: &[&str]) -> String {
    command.args(arguments);
    tool::run(command, PATIENCE).unwrap_or_else(|said| panic!("{said}"))
}

/// What the program in a folder says about its version, with nothing of the machine around it.
/// Runs the program, which says its version and of which commit it is.
fn names_its_commit(program: &Path) {
    let mut program = Command::new(program);
    program.env_clear();
    let version = said(program, &["--version"]);
    let commit = version.trim().strip_prefix(concat!("centavo ", env!("CARGO_PKG_VERSION"), " (commit "));
    let commit = commit.and_then(|rest| rest.strip_suffix(')'));
    assert!(
        commit.is_some_and(|hash| hash.len() == 12 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())),
        "{version}"
    );
}

#[test]
fn the_checksums_are_those_of_all_files() {
    let Some(folder) = files() else { return };
    let mut sums = Command::new("sha256sum");
    sums.current_dir(&folder);
    let checked = said(sums, &["--strict", "-c", "SHA256SUMS"]).lines().filter(|line| line.ends_with(": OK")).count();
    assert_eq!(checked, std::fs::read_dir(&folder).unwrap().count() - 1, "a file has no checksum");
}

#[test]
fn archive_and_package_have_the_program_and_its_files() {
    let Some(folder) = files() else { return };
    let place = tempfile::tempdir().unwrap();
    let to = place.path().to_str().unwrap();
    said(
        Command::new("tar"),
        &["xf", file(&folder, "-linux.tar.gz").to_str().unwrap(), "-C", to, "--strip-components=1"],
    );
    names_its_commit(&place.path().join("centavo"));
    println!("the program has {} bytes", std::fs::metadata(place.path().join("centavo")).unwrap().len());
    assert!(place.path().join("deploy/centavo.service").is_file() && place.path().join("LICENSE").is_file());
    assert!(place.path().join("docs/guide/first-charge.md").is_file(), "the pages that the README leads to");
    assert!(place.path().join("man/centavo-serve.1").is_file() && place.path().join("completions/_centavo").is_file());

    // The page's one command for the archive.
    let block = blocks_of("docs/deploy/README.md").0.into_iter().find(|block| block.starts_with("tar xf")).unwrap();
    let mut demo = Command::new("bash");
    let commands = block.lines().next().unwrap().replace(" && ", "\n");
    demo.args(["-c", &format!("{DEMO}{commands}{SERVES}")]).current_dir(&folder);
    demo.env("DATA", place.path().join("demo"))
        .env("CENTAVO_LISTEN", "127.0.0.1:0")
        .env("CENTAVO_OPS_LISTEN", "127.0.0.1:0");
    assert!(said(demo, &[]).contains("Serving."), "the demo does not serve");

    let Some(unpack) = tool::program("dpkg-deb") else { return };
    said(unpack, &["-x", file(&folder, ".deb").to_str().unwrap(), to]);
    names_its_commit(&place.path().join("usr/bin/centavo"));
    for name in ["centavo.toml", "prometheus.yml", "debian/postinst"] {
        assert!(place.path().join("deploy").join(name).is_file(), "{name}");
    }
    for name in ["systemd/system/centavo.service", "systemd/system/centavo-backup.timer", "sysusers.d/centavo.conf"] {
        assert!(place.path().join("usr/lib").join(name).is_file(), "{name}");
    }
    for name in ["man/man1/centavo-serve.1.gz", "bash-completion/completions/centavo"] {
        assert!(place.path().join("usr/share").join(name).is_file(), "{name}");
    }
    let about = said(Command::new("dpkg-deb"), &["-f", file(&folder, ".deb").to_str().unwrap(), "Depends"]);
    assert_eq!(about.trim(), "", "it needs no library");
}

/// The command unpacks into a folder of the test, and the demo ends once it serves.
const DEMO: &str = r#"
set -euo pipefail
mkdir "$DATA"
tar() { command tar "$1" "$2" -C "$DATA" && cd "$DATA"; }
"#;
const SERVES: &str = r#" --charges 3 > said 2>&1 &
until grep -q '^Serving' said; do kill -0 $! || { cat said; exit 1; }; sleep 0.1; done
kill $! && wait $!
cat said
"#;

/// dpkg installs into another root, in which the scripts of the package work without chroot.
const PACKAGE: &str = r#"
set -euo pipefail
umask 022
mkdir -p root/etc root/var/lib/dpkg/{info,updates} && touch root/var/lib/dpkg/{status,available}
package() { dpkg --root="$PWD/root" --log=/dev/null --force-script-chrootless --force-depends "$@"; }
etc=root/etc/centavo
id=none
# Owner and mode of everything that the scripts make, by the user's number in that root.
look() { (cd root && stat -c '%a %u:%g %n' etc/centavo etc/centavo/{tls,ops-token,master-key} var/lib/centavo); }
package --install "$PACKAGE" | tee said
grep -q 'systemctl enable --now centavo.service centavo-backup.timer' said
id=$(sed -n 's/^centavo:[^:]*:\([0-9]*:[0-9]*\):.*/\1/p' root/etc/passwd)
look | tee looks
test -z "$(grep -v " $id " looks)"
test "$(cut -d' ' -f1 looks | tr '\n' ' ')" = '700 700 600 600 700 '
grep -Eqx 'operator:[0-9a-f]{64}' "$etc/ops-token" && grep -Eqx '[0-9a-f]{64}' "$etc/master-key"
test "$(cut -d: -f2 "$etc/ops-token")" != "$(cat "$etc/master-key")"
sed "s#\"/#\"$PWD/root/#" "$etc/centavo.toml" > there.toml
root/usr/bin/centavo serve --check --config there.toml --listen 127.0.0.1:0 --ops-listen 127.0.0.1:0 | tee check
if grep -e error: -e 'others than its owner' check; then exit 1; fi

: one more setting; echo 'sandbox = "on"' >> "$etc/centavo.toml" && chmod 711 "$etc"
sha256sum "$etc"/{centavo.toml,ops-token,master-key} > before
package --force-confold --install "$PACKAGE"
sha256sum --quiet -c before
look | diff looks -

# An older version takes its place, as the runbook's rollback has it, and the newer one again.
dpkg-deb -R "$PACKAGE" older && sed -i 's/^Version: .*/Version: 0.0.1/' older/DEBIAN/control
dpkg-deb -Znone -b older older.deb
for version in older.deb "$PACKAGE"; do
  package --force-confold --install "$version"
  grep -Fx "Version: $(dpkg-deb -f "$version" Version)" root/var/lib/dpkg/status
  sha256sum --quiet -c before
  look | diff looks -
done

# The right key is somewhere else: data that is there must not get a new one.
mkdir root/var/lib/centavo/journal && mv "$etc/master-key" kept
package --install "$PACKAGE"
test ! -e "$etc/master-key" && mv kept "$etc/master-key"

package --remove centavo
test ! -e root/usr/bin/centavo
package --purge centavo
test ! -e "$etc/centavo.toml" && test -d root/var/lib/centavo/journal
grep -v centavo.toml before | sha256sum --quiet -c
echo "the end is reached"
"#;

#[test]
fn dpkg_installs_the_package_and_its_secrets_stay() {
    let Some(folder) = files() else { return };
    if ["dpkg", "systemd-sysusers", "bash"].iter().any(|name| tool::program(name).is_none()) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("Nothing was tested: dpkg installs as root alone");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut script = Command::new("bash");
    script.args(["-c", PACKAGE]).current_dir(place.path()).env("PACKAGE", file(&folder, ".deb"));
    let said = tool::run(script, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    assert!(said.contains("the end is reached"), "{said}");
}

#[test]
fn the_list_of_parts_names_every_dependency_with_its_license() {
    let Some(folder) = files() else { return };
    let parts: Value = serde_json::from_slice(&std::fs::read(file(&folder, ".cdx.json")).unwrap()).unwrap();
    assert_eq!(parts["bomFormat"], "CycloneDX");
    assert_eq!(parts["metadata"]["component"]["name"], "centavo");
    let components = parts["components"].as_array().unwrap();
    let tree = ["tree", "-p", "centavo", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = said(Command::new(env!("CARGO")), &tree);
    let needed: BTreeSet<_> = tree.lines().skip(1).filter_map(|line| line.split_once(" v")).collect();
    assert!(needed.len() > 100, "{tree}");
    for (name, rest) in needed {
        let version = rest.split(' ').next().unwrap();
        let part = components.iter().find(|part| part["name"] == name && part["version"] == version);
        let part = part.unwrap_or_else(|| panic!("{name} {version} is missing"));
        assert!(part["licenses"].as_array().is_some_and(|licenses| !licenses.is_empty()), "{name}");
    }
}

/// Buildah runs it with `chroot`, which needs no container engine; then all else is as in one.
const IMAGE: &str = r#"
set -euo pipefail
# podman load gives it this name, under which the pages and compose.yml ask for it.
tar xOf "$IMAGE" index.json | jq -e --arg name "centavo:$VERSION" \
  '.manifests[0].annotations["org.opencontainers.image.ref.name"] == $name'
loaded=$(buildah pull --quiet "oci-archive:$IMAGE")
buildah inspect --type image "$loaded" | jq -e '.OCIv1.config | .User == "65532:65532" and .StopSignal == "SIGTERM"'
container=$(buildah from "$loaded") server=
trap 'stop 2> /dev/null || true; buildah rm "$container" > /dev/null; buildah rmi "$loaded" > /dev/null' EXIT
centavo() {
  exec buildah run --isolation chroot --volume "$PWD/data:/data" --volume "$PWD/backup:/backup" \
    --env CENTAVO_LISTEN=127.0.0.1:$PUBLIC --env CENTAVO_OPS_LISTEN=127.0.0.1:$OPERATIONS \
    --env CENTAVO_OPS_TOKEN=$TOKEN --env CENTAVO_SANDBOX=on "$container" /centavo "$@"
}
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' "$@"; }
serve() {
  centavo serve >> log 2>&1 & server=$!
  for _ in $(seq 100); do curl -sf "$CENTAVO_OPS_URL/readyz" && return; sleep 0.2; done
  cat log; exit 1
}
# The program is the last of the processes that buildah starts, each below the one before.
last() {
  local below
  below=$(pgrep -P "$1" | head -n 1) || true
  if [ -n "$below" ]; then last "$below"; else echo "$1"; fi
}
stop() { kill "$(last "$server")" && wait "$server"; }
mkdir data backup && chown 65532:65532 data backup && chmod 700 data backup
CENTAVO_OPS_URL=http://127.0.0.1:$OPERATIONS
serve
merchant=$(ask "$CENTAVO_OPS_URL/ops/merchants" -d '{"name": "Loja", "document": "11222333000181", "split_enabled": true}' | jq -r .id)
(centavo backup --out /backup)
stop
serve
ask "$CENTAVO_OPS_URL/ops/merchants/$merchant" | jq -e '.name == "Loja"'
stop
test -z "$(find data backup ! -user 65532)"
ls backup/keys
echo "the end is reached"
"#;

#[test]
fn the_image_serves_and_keeps_its_data() {
    let Some(folder) = files() else { return };
    if std::env::var("CENTAVO_RELEASE_IMAGE").as_deref() == Ok("left-out") {
        println!("Nothing was tested: there is no image, as CENTAVO_RELEASE_IMAGE says");
        return;
    }
    if ["buildah", "curl", "jq", "bash"].iter().any(|name| tool::program(name).is_none()) {
        return;
    }
    let ports = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [public, operations] = ports.map(|port| port.local_addr().unwrap().port().to_string());
    let place = tempfile::tempdir().unwrap();
    let mut script = Command::new("bash");
    script.args(["-c", IMAGE]).current_dir(place.path()).env("IMAGE", file(&folder, ".oci.tar"));
    script.env("PUBLIC", public).env("OPERATIONS", operations).env("TOKEN", "b".repeat(64));
    script.env("VERSION", env!("CARGO_PKG_VERSION"));
    let said = tool::run(script, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    assert!(said.contains("the end is reached"), "{said}");
}
