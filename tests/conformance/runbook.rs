//! The runbook: every command of `docs/runbook.md` runs as it stands, from upgrade to the move to
//! another machine. Only `systemctl`, `apt-get` and `ssh` are others here: the first starts and
//! stops the program itself, the second puts the older one back, the last works in a folder that
//! stands for another machine. Where the test runs as root, the server has a user of its own, as
//! under its unit. The move to PostgreSQL and back is left out where PostgreSQL is missing, and the
//! test says so.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use store::testkit::postgres;
use testkit::server::centavo;

use crate::guide::blocks;
use crate::tool;

/// The machine that the page begins with: a server that runs, a merchant with two API keys.
const MACHINE: &str = r#"
set -euo pipefail
trap 'kill $SERVER 2> /dev/null || true' EXIT
if [ "$(id -u)" = 0 ]; then
  as_owner() { exec setpriv --reuid "$OWNER" --regid "$(id -g "$OWNER")" --clear-groups "$@"; }
else
  OWNER=$(id -un)
  as_owner() { exec "$@"; }
  runuser() { shift 3; "$@"; }
  export -f runuser
fi
start() {
  as_owner "$PROGRAM" serve --config "$CENTAVO_CONFIG" >> log 2>&1 &
  SERVER=$!
}
stop() { kill "$SERVER" && wait "$SERVER"; }
systemctl() {
  case $1 in
    start | enable) start ;;
    disable)
      case $3 in
        centavo-follower.service) kill "$FOLLOWER" ;;
        centavo.service) stop ;;
      esac ;;
    stop) stop ;;
    restart) stop && start ;;
    reload) kill -HUP "$SERVER" ;;
    reset-failed) ;;
    *) return 1 ;;
  esac
}
# A package starts a server again that runs.
apt-get() {
  test "$*" = 'install -y --allow-downgrades ./centavo_before.deb'
  systemctl stop centavo
  install -m 755 "$PROGRAM.before" "$PROGRAM"
  systemctl start centavo
}
# The paths of the other machine are below a folder. Once the server has started there, the page is
# there too.
ssh() {
  test "$1" = root@other.example
  case $2 in
    'systemctl enable --now centavo.service centavo-backup.timer')
      for name in CENTAVO_CONFIG CENTAVO_DATA CENTAVO_OPS_TOKEN_FILE CENTAVO_MASTER_KEY_FILE PROGRAM BACKUP; do
        export "$name=$(there "${!name}")"
      done
      start
      ready ;;
    *) bash -c "$(there "$2")" ;;
  esac
}
there() { sed "s#$PWD/#$PWD/other/#g" <<< "$1"; }
install -d -m 700 other/data other/etc && install -m 755 "$PROGRAM" other/centavo
echo 'a key that the package made' > other/etc/master-key
chmod 755 other && chown -R "$OWNER" other/data other/etc
chmod 755 .
install -d -m 700 -o "$OWNER" "$CENTAVO_DATA" "${BACKUP%/*}" "${CENTAVO_CONFIG%/*}"
printf '%s\n' 'sandbox = "on"' 'ops_roles = "operator=admin"' > "$CENTAVO_CONFIG"
(umask 077; echo "operator:$(openssl rand -hex 32)" > "$CENTAVO_OPS_TOKEN_FILE"; openssl rand -hex 32 > "$CENTAVO_MASTER_KEY_FILE")
chown "$OWNER" "${CENTAVO_CONFIG%/*}"/*
start
"#;

const MERCHANT: &str = r#"
ready
MERCHANT=$(operate "$CENTAVO_OPS_URL/ops/merchants" -H 'Content-Type: application/json' \
  -d '{"name": "Loja", "document": "11222333000181", "split_enabled": true}' | jq -r .id)
key() { operate -X POST "$CENTAVO_OPS_URL/ops/merchants/$MERCHANT/api-keys" -H 'Content-Type: application/json' -d '{}' | jq -r .id; }
OLD=$(key) KEY=$(key)
"#;

/// The second machine follows the first one, before that is lost.
const FOLLOWER: &str = r#"
(as_owner "$PROGRAM" backup --follow "$CENTAVO_OPS_URL" --out "$COPY") > follower.log 2>&1 &
FOLLOWER=$!
until grep -q 'Up to date' follower.log; do kill -0 "$FOLLOWER"; sleep 0.1; done
stop
"#;

/// After all steps the books are those of the beginning, the keys are as they were left, and the
/// server's user has all files.
const END: &str = r#"
operate "$CENTAVO_OPS_URL/ops/merchants/$MERCHANT" | jq -e '.name == "Loja"'
! operate -X DELETE "$CENTAVO_OPS_URL/ops/api-keys/$OLD" -o /dev/null
stop
diff <(find "$CENTAVO_DATA" "${BACKUP%/*}" ! -user "$OWNER") /dev/null
echo "the end is reached"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_the_runbook_runs() {
    let needed = ["bash", "curl", "jq", "setpriv"];
    if needed.iter().any(|name| tool::program(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["centavo", "new"] {
        std::fs::copy(centavo(), path(name)).unwrap();
    }
    let database = postgres::shared();
    if let Some(database) = &database {
        std::fs::create_dir(path("etc")).unwrap();
        std::fs::write(path("etc/store"), database.database()).unwrap();
    }
    let mut begun = false;
    let mut is_of_database = false;
    let mut script = MACHINE.to_owned();
    let mut followed = false;
    for block in blocks("runbook.md", "bash") {
        if block.contains("disable --now centavo-follower") {
            script += FOLLOWER;
            followed = true;
        }
        // The move to a database and back; `programs` says what is missing where there is none.
        is_of_database |= block.contains("STORE=${STORE:");
        if database.is_some() || !is_of_database {
            script += &block;
        }
        is_of_database &= !block.contains("unset CENTAVO_STORE_FILE");
        if !begun {
            script += MERCHANT;
            begun = true;
        }
    }
    assert!(followed, "the page has no follower");
    assert!(!is_of_database, "the page does not come back from the database");
    script += END;
    let ports = [TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap()];
    let [public, operations] = ports.map(|port| port.local_addr().unwrap().to_string());
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path());
    for (name, value) in [
        ("COPY_OF_KEY", path("etc/master-key")),
        ("OWNER", "nobody".into()),
        ("CENTAVO_CONFIG", path("etc/centavo.toml")),
        ("CENTAVO_DATA", path("data")),
        ("CENTAVO_OPS_TOKEN_FILE", path("etc/ops-token")),
        ("CENTAVO_MASTER_KEY_FILE", path("etc/master-key")),
        ("PROGRAM", path("centavo")),
        ("NEW", path("new")),
        ("BACKUP", path("copies/journal")),
        ("DRILL", path("copies/drill")),
        ("RESTORED", path("copies/restored")),
        ("COPY", path("copies/copy")),
        ("STORE", path("etc/store")),
        ("NEW_MACHINE", "other.example".into()),
        ("BIGGER", path("bigger")),
    ] {
        command.env(name, value);
    }
    command.env("CENTAVO_LISTEN", &public).env("CENTAVO_OPS_LISTEN", &operations);
    command.env("CENTAVO_URL", format!("http://{public}")).env("CENTAVO_OPS_URL", format!("http://{operations}"));
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(300))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    assert!(said.contains("the end is reached"), "{said}");
    assert!(!said.contains("not opened"), "{said}");
    assert_eq!(said.matches("each the same byte by byte").count(), if database.is_some() { 2 } else { 0 }, "{said}");
}
