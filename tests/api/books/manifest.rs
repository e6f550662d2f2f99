//! The manifest beside an export: it says what the files hold, and a month that is changed, left
//! out or exchanged is noticed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use books::export::{Format, Request};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{balances_by_ledger, month, run, whole};
use crate::world::{World, cut_in, text};

fn read(folder: &Path, request: &Request) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name(request))).unwrap()).unwrap()
}

fn name(request: &Request) -> String {
    let ledger = request.ledger.as_deref().unwrap_or("all");
    format!("{}.{}.manifest.json", request.dated(ledger), request.format.ending())
}

fn digest(file: &Path) -> String {
    Sha256::digest(std::fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(value: &Value) -> i128 {
    i128::from(value.as_i64().unwrap())
}

/// The rows of an account of a manifest: its ledger, its name and the amounts.
fn accounts(manifest: &Value) -> Vec<(String, String, [i128; 4])> {
    let rows = manifest["accounts"].as_array().unwrap().iter();
    let amounts = |row: &Value| ["opening", "debits", "credits", "closing"].map(|name| number(&row[name]));
    rows.map(|row| (text(&row["ledger"]), text(&row["account"]), amounts(row))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_says_what_the_files_hold() {
    let world = World::sandbox().await;
    month::play(&world).await;
    let by_ledger = balances_by_ledger(&world).await;
    for format in Format::MADE {
        let out = world.folder().join(format.name());
        run(&world.folder(), &out, whole(format), Some(&world)).await.unwrap();
        let manifest = read(&out, &whole(format));
        assert_eq!((&manifest["schema"], &manifest["request"]["format"]), (&4.into(), &format.name().into()));
        assert_eq!(manifest["debits"], manifest["credits"]);
        assert!(manifest["previous"].is_null());
        let mut sums = 0;
        for (ledger, account, [opening, debits, credits, closing]) in accounts(&manifest) {
            assert_eq!((opening, closing), (0, debits - credits), "{account}");
            let expected = by_ledger[&ledger].get(&account).copied().unwrap_or_default();
            assert_eq!(closing, expected, "{format:?}: {account} of {ledger}");
            sums += debits;
        }
        assert_eq!(sums, number(&manifest["debits"]));
        let files = manifest["files"].as_array().unwrap();
        let found: BTreeSet<_> = super::files(&out).into_iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(found.len(), files.len() + 1, "the manifest does not name itself");
        for file in files {
            let path = out.join(text(&file["path"]));
            assert_eq!(text(&file["sha256"]), digest(&path), "{path:?}");
            assert_eq!(number(&file["bytes"]), i128::from(path.metadata().unwrap().len()), "{path:?}");
        }
        let head = text(&manifest["head"]);
        assert!(head.len() == 64 && head != "0".repeat(64), "{head}");
        assert_eq!(cut_in(&manifest), world.cut().await);
    }
}

/// `docs/audit/verify_exports.py` accepts the folder, and names each defect that is made in it.
fn the_auditors_program_finds_each_change(
    folder: &Path,
    first: &Request,
    second: &Request,
    first_ends: chrono::NaiveDate,
) {
    let Some(python) = super::reports::python() else { return };
    let verify = |through: Option<chrono::NaiveDate>| {
        let mut command = std::process::Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit/verify_exports.py")).arg(folder);
        if let Some(day) = through {
            command.arg("--through").arg(day.to_string());
        }
        let said = command.output().unwrap();
        let text =
            String::from_utf8_lossy(if said.status.success() { &said.stdout } else { &said.stderr }).into_owned();
        if said.status.success() { Ok(text) } else { Err(text) }
    };
    assert!(verify(None).unwrap().starts_with("all as csv: 2 manifests through the cut"));
    assert!(verify(Some(first_ends)).unwrap_err().contains("end on None, not on"));
    let [earlier, later] =
        [first, second].map(|request| (folder.join(name(request)), folder.join(request.file_name())));
    let mut changes = 0;
    let mut found = |path: &Path, change: &dyn Fn(String) -> Option<String>, expected: &str| {
        let whole = std::fs::read_to_string(path).unwrap();
        let changed = change(whole.clone());
        match &changed {
            Some(changed) => std::fs::write(path, changed).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        assert!(changed.as_ref() != Some(&whole), "nothing was changed");
        let said = verify(None).unwrap_err();
        assert!(said.contains(expected), "{expected}: {said}");
        std::fs::write(path, whole).unwrap();
        changes += 1;
    };
    found(&earlier.1, &|text| Some(text.replacen("Available", "Availabel", 1)), "is another file");
    found(&later.1, &|_| None, "is missing");
    found(&earlier.0, &|_| None, "the manifest before it is missing");
    found(&earlier.0, &|text| Some(text.replacen("\"rows\": ", "\"rows\":  ", 1)), "it does not follow");
    found(&later.0, &|text| Some(text.replacen("\"opening\": ", "\"opening\": 1", 1)), "do not add up");
    found(&later.0, &|text| Some(text.replacen("\"debits\": ", "\"debits\": 1", 1)), "sum to");
    assert_eq!(changes, 6);
    verify(None).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_of_months_are_a_chain() {
    let world = World::sandbox().await;
    month::play(&world).await;
    let rows = super::rows_of(&world.ops_get("/ops/export").await.text);
    let middle: chrono::NaiveDate = text(&rows[rows.len() / 2]["date"]).parse().unwrap();
    let end = middle.pred_opt().unwrap();
    let first = Request { to: Some(end), ..whole(Format::Csv) };
    let second = Request { from: Some(middle), ..whole(Format::Csv) };
    let out = world.folder().join("chain");
    run(&world.folder(), &out, first.clone(), Some(&world)).await.unwrap();
    run(&world.folder(), &out, second.clone(), Some(&world)).await.unwrap();
    let [before, after] = [&first, &second].map(|request| read(&out, request));
    assert_eq!(text(&after["previous"]["path"]), name(&first));
    assert_eq!(text(&after["previous"]["sha256"]), digest(&out.join(name(&first))));
    assert_ne!(before["head"], after["head"]);
    let [earlier, later] = [&before, &after].map(cut_in);
    assert!(earlier != later && earlier.is_within(&later));
    let closing: BTreeSet<_> = accounts(&before).into_iter().map(|(l, a, amounts)| (l, a, amounts[3])).collect();
    let opening: BTreeSet<_> = accounts(&after).into_iter().map(|(l, a, amounts)| (l, a, amounts[0])).collect();
    let without_zeros = |balances: BTreeSet<(String, String, i128)>| -> BTreeSet<_> {
        balances.into_iter().filter(|(_, _, balance)| *balance != 0).collect()
    };
    assert!(!closing.is_empty());
    assert_eq!(without_zeros(closing), without_zeros(opening));

    the_auditors_program_finds_each_change(&out, &first, &second, end);
    // A later Record changes nothing of a day that is over.
    let original = std::fs::read(out.join(name(&first))).unwrap();
    world.merchant().await.paid_pix(&crate::world::pix("80.00")).await;
    run(&world.folder(), &out, first.clone(), Some(&world)).await.unwrap();
    assert!(std::fs::read(out.join(name(&first))).unwrap() == original);

    // A centavo more in the month before, and the next one is refused; what was there stays.
    let forged = String::from_utf8(original).unwrap();
    let (_, _, amounts) = accounts(&before).into_iter().find(|(_, _, amounts)| amounts[3] > 0).unwrap();
    let forged =
        forged.replacen(&format!("\"closing\": {}", amounts[3]), &format!("\"closing\": {}", amounts[3] + 1), 1);
    std::fs::write(out.join(name(&first)), forged).unwrap();
    let there = super::files(&out);
    let error = run(&world.folder(), &out, second.clone(), Some(&world)).await.unwrap_err();
    assert!(error.contains("its closing balance of") && error.contains(&name(&first)), "{error}");
    assert!(super::files(&out) == there);

    // Without the month before, the chain has a beginning where none should be.
    std::fs::remove_file(out.join(name(&first))).unwrap();
    run(&world.folder(), &out, second.clone(), Some(&world)).await.unwrap();
    assert!(read(&out, &second)["previous"].is_null());
}

/// A hundred random forgeries of the exports of three parts of a month: a byte, a file, a part that
/// is left out. The auditors' program, which knows the last day and the digest of the last
/// manifest, finds each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_forgeries_of_exports_are_found() {
    let Some(python) = super::reports::python() else { return };
    let world = World::sandbox().await;
    month::play(&world).await;
    let rows = super::rows_of(&world.ops_get("/ops/export").await.text);
    let day = |part: usize| -> chrono::NaiveDate { text(&rows[part * (rows.len() - 1) / 3]["date"]).parse().unwrap() };
    let (out, last) = (world.folder().join("forged"), wire::timestamp::day_of(world.engine().now().0));
    for (from, to) in [(None, day(1)), (day(1).succ_opt(), day(2)), (day(2).succ_opt(), last)] {
        let request = Request { from, to: Some(to), ..whole(Format::Csv) };
        run(&world.folder(), &out, request, Some(&world)).await.unwrap();
    }
    let is_last = |path: &Path| path.to_string_lossy().contains(&last.to_string());
    let verify_with = |more: &[&str]| {
        let mut command = std::process::Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit/verify_exports.py")).arg(&out);
        let said = command.args(["--through", &last.to_string()]).args(more).output().unwrap();
        if said.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said.stderr).into_owned()) }
    };
    let early = verify_with(&[]).unwrap_err();
    assert!(early.contains(&format!("it was made before the end of {last}")), "{early}");
    world.advance(2 * 86_400).await;
    let request = Request { from: day(2).succ_opt(), to: Some(last), ..whole(Format::Csv) };
    run(&world.folder(), &out, request, Some(&world)).await.unwrap();
    let files: Vec<_> = super::files(&out).into_iter().map(|(path, text)| (out.join(path), text)).collect();
    assert_eq!(files.len(), 6);
    let of_last = files.iter().find(|(path, _)| is_last(path) && path.to_string_lossy().ends_with(".manifest.json"));
    let digest_of_last = digest(&of_last.unwrap().0);
    let verify = || verify_with(&["--last", &digest_of_last]);
    verify().unwrap();
    for seed in 0..100_u64 {
        let mut state = seed;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        let (path, whole) = &files[below(files.len())];
        let mut bytes = whole.clone().into_bytes();
        let place = below(bytes.len());
        match seed % 6 {
            0 => bytes[place] ^= 1 << below(7),
            1 => bytes.insert(place, b'0' + below(10) as u8),
            2 => bytes.truncate(place),
            3 => bytes = files.iter().find(|(other, _)| other != path).unwrap().1.clone().into_bytes(),
            4 => std::fs::remove_file(path).unwrap(),
            _ => {
                files.iter().filter(|(path, _)| is_last(path)).for_each(|(path, _)| std::fs::remove_file(path).unwrap())
            }
        }
        if seed % 6 < 4 {
            assert!(bytes != whole.as_bytes());
            std::fs::write(path, bytes).unwrap();
        }
        let said = verify().expect_err(&format!("seed {seed}, {path:?}"));
        assert!(said.contains("verify_exports: "), "seed {seed}, {path:?}: {said}");
        files.iter().for_each(|(path, whole)| std::fs::write(path, whole).unwrap());
    }
    verify().unwrap();

    // An id of a row is another one, and all hashes after it are made anew: files and manifests
    // agree with each other, and only the digest stored elsewhere shows it.
    let mut parts: Vec<_> = files.iter().filter(|(path, _)| !path.to_string_lossy().ends_with(".json")).collect();
    parts.sort_by_key(|(path, _)| text(&manifest_of(&files, path)["request"]["to"]));
    assert_eq!(parts.len(), 3);
    for forged in 0..parts.len() {
        let mut anew: Vec<(String, String)> = Vec::new();
        for (place, (path, whole)) in parts.iter().enumerate() {
            let before = digest(path);
            if place == forged {
                std::fs::write(path, with_another_id(whole)).unwrap();
            }
            anew.push((before, digest(path)));
            let manifest = manifest_path(path);
            let before = digest(&manifest);
            let said = std::fs::read_to_string(&manifest).unwrap();
            let said = anew.iter().fold(said, |said, (old, new)| said.replace(old, new));
            std::fs::write(&manifest, said).unwrap();
            anew.push((before, digest(&manifest)));
        }
        verify_with(&[]).unwrap();
        let said = verify().unwrap_err();
        assert!(said.contains("verify_exports: "), "part {forged}: {said}");
        files.iter().for_each(|(path, whole)| std::fs::write(path, whole).unwrap());
    }
    verify().unwrap();
}

/// The manifest beside a file.
fn manifest_path(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}.manifest.json", file.display()))
}

/// The manifest of a file among the files of an export.
fn manifest_of(files: &[(PathBuf, String)], file: &Path) -> Value {
    let (_, text) = files.iter().find(|(path, _)| *path == manifest_path(file)).unwrap();
    serde_json::from_str(text).unwrap()
}

/// Rows with another txid in the place of the first one.
fn with_another_id(rows: &str) -> String {
    let is_txid = |cell: &&str| cell.len() == 32 && cell.bytes().all(|byte| byte.is_ascii_hexdigit());
    let txid = rows.split(',').find(is_txid).unwrap();
    let last = if txid.ends_with('0') { '1' } else { '0' };
    rows.replacen(txid, &format!("{}{last}", &txid[..31]), 1)
}

/// The auditors' program checks the signature of a manifest that was made in the background: with
/// the key of the checkpoints, and of the manifest as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_signature_of_a_manifest_is_checked() {
    let Some(python) = super::reports::python() else { return };
    let world = World::sandbox().await;
    world.merchant().await.paid_pix(&crate::world::pix("80.00")).await;
    let id = text(&world.ops_post("/ops/exports", &json!({"format": "csv"})).await.expect(202)["id"]);
    world.finished("/ops/exports", &id, crate::world::OPS_TOKEN).await;
    let [job, file, manifest] = ["", "/file", "/manifest"].map(|end| format!("/ops/exports/{id}{end}"));
    let folder = world.folder().join("signed");
    std::fs::create_dir(&folder).unwrap();
    let save = |name: &str, bytes: &str| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let [job, file, manifest] = [world.ops_get(&job).await, world.ops_get(&file).await, world.ops_get(&manifest).await];
    let (signed, name) = (save("job.json", &job.text), text(&manifest.body["files"][0]["path"]));
    save(&name, &file.text);
    let of = save(&format!("{name}.manifest.json"), &manifest.text);
    let checkpoint = format!("/ops/checkpoint?partition={}", world.last().await.partition.0);
    let key = text(&world.ops_get(&checkpoint).await.expect(200)["public_key"]);
    let verify = |key: &str| {
        let mut command = std::process::Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit/verify_exports.py")).arg(&folder);
        let said = command.arg("--signed").arg(&signed).args(["--key", key]).output().unwrap();
        if said.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said.stderr).into_owned()) }
    };
    let whole = verify(&key);
    if whole.as_ref().is_err_and(|said| said.contains("need the package cryptography")) {
        println!("not checked, because it is not installed: cryptography for Python");
        assert!(!super::tools::is_required(), "CENTAVO_CONFORMANCE=required, and there is no cryptography for Python");
        return;
    }
    whole.unwrap();
    // The public key of the first test of RFC 8032.
    let other = verify("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap_err();
    assert!(other.contains("job.json: its signature is not of this key"), "{other}");
    save("job.json", r#"{"report": "fees"}"#);
    assert!(verify(&key).unwrap_err().contains("job.json: it signs no manifest"));
    save("job.json", &job.text);
    std::fs::write(&of, manifest.text.replacen("\"rows\": ", "\"rows\":  ", 1)).unwrap();
    let changed = verify(&key).unwrap_err();
    assert!(changed.contains("none of the jobs signed it"), "{changed}");
}
