//! The installation of `docs/deploy/README.md`: its commands as they stand, with the files of the
//! package, in a root of their own. Server, backup, Prometheus and warm copy are the real programs,
//! each as the user of its unit. Only what starts them is another one: `systemctl`, `runuser` and
//! `apt-get` are scripts here, and ports and paths are those of the test.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::server::centavo;

use crate::commands::blocks_of;
use crate::tool;

const PAGE: &str = "docs/deploy/README.md";

/// What the machine has before the first step. `unit` prints the command of a unit.
const MACHINE: &str = r##"
set -euo pipefail
umask 022
chmod 755 .
export HERE=$PWD
trap 'kill $(cat "$HERE"/*.pid) 2> /dev/null || true' EXIT
mkdir -p bin root/etc/default root/usr/bin
cp "$PROGRAM" root/usr/bin/centavo
cat > bin/of_root <<'SCRIPT'
as_owner() {
  owner=$(sed -n 's/^centavo:[^:]*:\([0-9]*:[0-9]*\):.*/\1/p' "$DPKG_ROOT/etc/passwd")
  [ -d "$1" ] || [ "$1" = - ] || install -d -m 700 -o "${owner%:*}" -g "${owner#*:}" "$1"
  shift
  exec setpriv --reuid "${owner%:*}" --regid "${owner#*:}" --clear-groups "$@"
}
SCRIPT
cat > bin/apt-get <<'SCRIPT'
#!/bin/bash
[ "$1" = install ] && sh "$CARGO_MANIFEST_DIR/docs/deploy/debian/postinst" configure ""
SCRIPT
cat > bin/runuser <<'SCRIPT'
#!/bin/bash
. "$HERE/bin/of_root"
[ "$1 $2 $3" = "-u centavo --" ] && shift 3 && as_owner - "$@"
SCRIPT
cat > bin/systemctl <<'SCRIPT'
#!/bin/bash
set -euo pipefail
. "$HERE/bin/of_root"
start() { # name, state directory
  command=$(sed -n ':more; /\\$/ { N; s/\\\n//; b more }; s/^ExecStart=//p' "$DPKG_ROOT/usr/lib/systemd/system/centavo$1.service" |
    sed "s# /# $DPKG_ROOT/#g; s#^/#$DPKG_ROOT/#; s#\${CENTAVO_PRIMARY}#${CENTAVO_PRIMARY:-}#")
  as_owner "$2" $command
}
launch() { # name of the process, function, arguments
  name=$1; shift
  ("$@") >> "$HERE/$name.log" 2>&1 &
  echo $! > "$HERE/$name.pid"
}
prometheus() { # as Debian's unit; 9090 may be taken on this machine
  . "$DPKG_ROOT/etc/default/prometheus"
  exec /usr/bin/prometheus ${ARGS//9090/$PROMETHEUS} --config.file="$DPKG_ROOT/etc/prometheus/prometheus.yml" \
    --storage.tsdb.path="$HERE/tsdb" --web.console.templates="$DPKG_ROOT/etc/prometheus/consoles" \
    --web.console.libraries=/etc/prometheus/console_libraries
}
case "$*" in
  "enable --now centavo.service centavo-backup.timer")
    launch server start "" "$DPKG_ROOT/var/lib/centavo"
    until curl -sf "http://$CENTAVO_OPS_LISTEN/readyz"; do kill -0 "$(cat "$HERE/server.pid")"; sleep 0.2; done ;;
  "start centavo-backup") (start -backup "$DPKG_ROOT/var/lib/centavo-backup") ;;
  "restart prometheus") launch prometheus prometheus ;;
  "--quiet is-active prometheus") kill -0 "$(cat "$HERE/prometheus.pid")" 2> /dev/null ;;
  "enable --now centavo-follower.service")
    . "$DPKG_ROOT/etc/centavo/follower"
    export CENTAVO_OPS_TOKEN_FILE=$DPKG_ROOT/etc/centavo/ops-token
    launch follower start -follower "$DPKG_ROOT/var/lib/centavo-copy" ;;
  "--quiet is-active centavo") [ -e "$HERE/server.pid" ] ;;
  "reload centavo") kill -HUP "$(cat "$HERE/server.pid")" ;;
  *) echo "systemctl $*: not here" >&2; exit 1 ;;
esac
SCRIPT
chmod 755 bin/*
export PATH=$HERE/bin:$HERE/root/usr/bin:$HERE/root/usr/sbin:$PATH
"##;

/// The files of the package, by the list from which it is made.
const PACKAGE: &str = r##"
export DPKG_ROOT=$HERE/root
sed -n 's#^ *\["\(docs/[^"]*\)", "\([^"]*\)", "\([0-9]*\)"\],$#\1 \2 \3#p' "$CARGO_MANIFEST_DIR/Cargo.toml" |
  while read -r from to mode; do
    case $to in */) mkdir -p "$DPKG_ROOT/$to" ;; *) mkdir -p "$DPKG_ROOT/${to%/*}" ;; esac
    install -m "$mode" "$CARGO_MANIFEST_DIR"/$from "$DPKG_ROOT/$to"
  done
sed -i "s#\"/#\"$DPKG_ROOT/#; s#\":8443\"#\"127.0.0.1:$PUBLIC\"#" root/etc/centavo/centavo.toml
sed -i "s#127.0.0.1:8081#$CENTAVO_OPS_LISTEN#" root/usr/share/centavo/prometheus/prometheus.yml
sed -i "s#http://127.0.0.1:9090/#http://127.0.0.1:$PROMETHEUS/#" root/usr/sbin/centavo-setup
echo 'of Debian' > root/etc/default/prometheus
"##;

/// Before step 2: the certificate of a trial, and one with another's key, which is refused.
const CERTIFICATE: &str = r#"
openssl genpkey -algorithm ed25519 -out other.pem
centavo-setup tls --trial localhost
if centavo-setup tls chain.pem other.pem; then echo "a foreign key was taken"; exit 1; fi
"#;

/// Before step 7: a Prometheus that does not start is an error.
const NO_PROMETHEUS: &str = r#"
cp root/usr/share/centavo/prometheus/prometheus.yml whole.yml
echo 'scrape: none' >> root/usr/share/centavo/prometheus/prometheus.yml
if centavo-setup prometheus 2> told; then echo "a Prometheus that ended was taken"; exit 1; fi
grep 'journalctl -u prometheus' told
cp whole.yml root/usr/share/centavo/prometheus/prometheus.yml
"#;

/// After the last step: what the steps promise. A renewed certificate is served after the same
/// command, without a restart, and what was set stays.
const LOOK: &str = r#"
test "$(stat -c %a root/etc/centavo/tls/key.pem)" = 600
test "$(cat root/etc/default/prometheus.before)" = 'of Debian'
test -e root/var/lib/centavo-backup/journal/keys
test ! -e root/var/lib/centavo/master.key
cp root/etc/centavo/centavo.toml settings
centavo-setup tls --trial localhost
cmp root/etc/centavo/centavo.toml settings
until curl -sSf --cacert chain.pem -o /dev/null "https://localhost:$PUBLIC/openapi.json" 2> /dev/null; do sleep 0.2; done
curl -sSf -H "Authorization: Bearer $(sed 's/.*://' root/etc/centavo/ops-token)" -H 'Content-Type: application/json' \
  -o /dev/null "http://$CENTAVO_OPS_LISTEN/ops/merchants" -d '{"name": "Loja", "document": "11222333000181"}'
"#;

/// The second machine: without the package, with the token of the first one.
const SECOND: &str = r#"
mkdir -p second/etc/centavo second/etc/systemd/system second/usr/bin second/usr/sbin second/usr/lib/systemd
ln -s ../../../etc/systemd/system second/usr/lib/systemd/system
export DPKG_ROOT=$HERE/second
"#;

const COPY: &str = r#"
stat -c '%a %n' "$DPKG_ROOT"/etc/centavo/master-key "$DPKG_ROOT"/var/lib/centavo | tee made
grep -q '^600 .*master-key' made && grep -q '^700 .*lib/centavo' made
cp root/etc/centavo/ops-token second/etc/centavo/ops-token
"#;

const END: &str = r#"
until grep 'through sequence [1-9]' follower.log; do kill -0 "$(cat follower.pid)"; sleep 0.2; done
echo "the end is reached"
"#;

/// A block of the page, with the paths and ports of the test.
fn block(begin: &str) -> String {
    let found = blocks_of(PAGE).0.into_iter().find(|block| block.starts_with(begin));
    let mut block = found.unwrap_or_else(|| panic!("{PAGE} has no block that begins with {begin}"));
    for (from, to) in [
        (" /etc/", " \"$DPKG_ROOT\"/etc/"),
        (" /usr/", " \"$DPKG_ROOT\"/usr/"),
        ("localhost:8443", "localhost:$PUBLIC"),
        ("'http://127.0.0.1:9090/api/v1/query?query=up'", "\"http://127.0.0.1:$PROMETHEUS/api/v1/query?query=up\""),
        ("https://primary.example.com:8081", "http://$CENTAVO_OPS_LISTEN"),
        ("target/dist/centavo", "\"$PROGRAM\""),
    ] {
        block = block.replace(from, to);
    }
    format!("echo '== {}'\n{block}", begin.replace('\'', ""))
}

fn is_root() -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        println!("Nothing was tested: an installation gives files to a user, as root alone can");
    }
    is
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_installation_run() {
    let needed = ["bash", "curl", "openssl", "setpriv", "systemd-sysusers", "prometheus"];
    if needed
        .iter()
        .any(|name| tool::program_with(name, if *name == "openssl" { "version" } else { "--version" }).is_none())
        || !is_root()
    {
        return;
    }
    let begins = [
        "apt-get install",
        "centavo-setup tls",
        "echo 'sandbox",
        "runuser",
        "systemctl enable --now centavo.service",
        "systemctl start centavo-backup",
        "centavo-setup prometheus",
        "curl -sS --cacert",
    ];
    let mut script = format!("{MACHINE}{PACKAGE}");
    for begin in begins {
        if begin == "centavo-setup tls" {
            script += CERTIFICATE;
        }
        if begin == "centavo-setup prometheus" {
            script += NO_PROMETHEUS;
        }
        script += &block(begin);
    }
    script += LOOK;
    let by_hand = format!("(cd \"$CARGO_MANIFEST_DIR\"\n{})\n", block("install -m 755"));
    script =
        [script, SECOND.to_owned(), by_hand, COPY.to_owned(), block("echo CENTAVO_PRIMARY"), END.to_owned()].concat();
    let folder = tempfile::tempdir().unwrap();
    let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [public, operations, prometheus] = ports.map(|port| port.local_addr().unwrap().port());
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path());
    command.env("PROGRAM", centavo()).env("CARGO_MANIFEST_DIR", Path::new(env!("CARGO_MANIFEST_DIR")));
    command.env("PUBLIC", public.to_string()).env("PROMETHEUS", prometheus.to_string());
    command.env("CENTAVO_OPS_LISTEN", format!("127.0.0.1:{operations}"));
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(240))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    for expected in ["A server starts with these settings.", "\n200 1.1\n", "the end is reached"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
