//! Packed clients, installed from their packs: they charge, list, verify a webhook, and repeat a
//! request with the same key.

use std::path::Path;

use crate::guide::{Workplace, blocks, busy_server};
use crate::tool;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Installs the packs beside each other, each without its surroundings.
const INSTALL: &str = r#"
source docs/guide/first-charge/account.sh >/dev/null
"$ROOT/clients/pack" packed
python3 -m pip install --quiet --no-index --no-deps --target python/installed packed/centavo-*.whl
export PYTHONPATH=$PWD/python/installed
cp "$ROOT/tests/conformance/packed.mts" typescript
cd typescript
npm install --silent --offline --no-audit --no-fund ../packed/centavo-*.tgz
node "$NODE_PATH/typescript/bin/tsc" --strict --noUncheckedIndexedAccess --module nodenext --target es2022 \
  --typeRoots "$NODE_PATH/@types" --types node packed.mts page.mts
cd ../python
"#;

/// Both call a busy server with a clock that does not wait.
const REPEAT: &str = r#"
CENTAVO_URL=$BUSY_PYTHON python3 -c '
import os, time; pauses = []; time.sleep = pauses.append
import centavo; client = centavo.connect(os.environ["CENTAVO_URL"], "x").get_httpx_client()
print("keys:", client.post("/x").json()["message"], "pauses:", *pauses)'
cd ../typescript
CENTAVO_URL=$BUSY_TYPESCRIPT node --input-type=module -e '
const pauses = [], real = setTimeout;
const isPause = (ms) => ms > 0 && ms < 10000 && ms % 1000 === 0;
globalThis.setTimeout = (done, ms) => (isPause(ms) ? done(pauses.push(ms / 1000)) : real(done, ms));
const { Centavo } = await import("centavo");
const answer = await new Centavo(process.env.CENTAVO_URL, "x").call("post", "/x");
console.log("keys:", answer.message, "pauses:", ...pauses);'
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packed_clients_charge_list_verify_and_repeat() {
    let needed = ["openapi-typescript", "typescript", "@types/node"];
    if needed.iter().any(|package| tool::node(&format!("{package}/package.json")).is_none()) {
        return;
    }
    let (Some(python), Some(_)) = (tool::python("openapi_python_client, flit_core"), tool::program("npm")) else {
        return;
    };
    let Some(place) = Workplace::new().await else { return };
    let tools = Path::new(python.get_program()).parent().unwrap().display().to_string();
    let (one, other) = (busy_server(), busy_server());
    for (language, file) in [("python", "python/page.py"), ("ts", "typescript/page.mts")] {
        let file = place.folder.path().join(file);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(file, blocks("guide/clients.md", language).join("\n")).unwrap();
    }
    let said = place.said(&format!(
        "export ROOT={ROOT} PATH={tools}:$PATH BUSY_PYTHON={one} BUSY_TYPESCRIPT={other}\n{INSTALL}\
         python3 -m mypy --strict {ROOT}/tests/conformance/packed.py page.py\n\
         python3 {ROOT}/tests/conformance/packed.py\npython3 page.py\n\
         (cd ../typescript && node packed.mjs && node page.mjs)\n{REPEAT}"
    ));
    assert_eq!(said.matches("the packed client has charged, listed and verified\n").count(), 2, "{said}");
    assert_eq!(said.matches("br.gov.bcb.pix").count(), 2, "{said}");
    assert_eq!(said.matches("keys: 1 pauses: 1 9 4\n").count(), 2, "{said}");
}

/// What is written by hand stays small, and its version is that of the server.
#[test]
fn the_clients_are_small_and_of_the_servers_version() {
    for (source, manifest) in [
        ("clients/python/centavo/__init__.py", "clients/python/pyproject.toml"),
        ("clients/typescript/src/index.ts", "clients/typescript/package.json"),
    ] {
        let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
        assert!(read(source).lines().count() <= 200, "{source}");
        let version = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
        let named = read(manifest).lines().any(|line| line.contains("version") && line.contains(&version));
        assert!(named, "{manifest} is not of {version}");
    }
}
