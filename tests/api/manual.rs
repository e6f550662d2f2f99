//! Manual under `/docs`: every page of the repository is there, and no link leads nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reqwest::Method;

use crate::world::*;

/// The Markdown files below a folder, without `.md`, by their paths from `docs`.
fn markdown(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            markdown(&entry, found);
        } else if let Some(name) = entry
            .to_str()
            .unwrap()
            .strip_suffix(".md")
            .filter(|name| !name.contains("/changes/") || name.ends_with("/README"))
        {
            found.insert(name.split_once("/docs/").unwrap().1.to_owned());
        }
    }
}

fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    page.split(&format!(" {name}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// The auditors' program, which pages link.
const SCRIPT: &str = "/docs/audit/verify_backup.py";
const EXPORTS_SCRIPT: &str = "/docs/audit/verify_exports.py";

#[tokio::test]
async fn every_document_is_served_and_every_link_leads_somewhere() {
    let world = World::sandbox().await;
    let mut names = BTreeSet::new();
    markdown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"), &mut names);
    assert!(names.len() > 12 && names.contains("guide/first-charge"), "{names:?}");
    let mut pages = BTreeMap::new();
    for path in names.iter().map(|name| format!("/docs/{name}")).chain(["/docs".to_owned()]) {
        let page = world.send(Method::GET, &path, &[], "").await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{path}");
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"), "{path}");
        for loading in ["<script", "<img", "<iframe", "style=", "@import"] {
            assert!(!page.text.contains(loading), "{path}: {loading}");
        }
        pages.insert(path, page.text);
    }
    // Pages link what stands beside `docs`, and a script.
    for (name, text) in [("CHANGELOG", "<h1 id=\"changelog\">"), ("SECURITY", "<h1 id=\"security\">")] {
        let path = format!("/docs/{name}");
        let page = world.send(Method::GET, &path, &[], "").await;
        assert!(page.status == 200 && page.text.contains(text), "{path}");
        assert!(pages.values().any(|page| attributes(page, "href").contains(&&*path)), "nothing leads to {path}");
        pages.insert(path, page.text);
    }
    let script = world.send(Method::GET, SCRIPT, &[], "").await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/x-python; charset=utf-8")));
    assert_eq!(script.text, include_str!("../../docs/audit/verify_backup.py"));
    let other = world.send(Method::GET, EXPORTS_SCRIPT, &[], "").await;
    assert_eq!(other.text, include_str!("../../docs/audit/verify_exports.py"));
    let leads_to_script = |page: &str| attributes(page, "href").contains(&SCRIPT);
    assert!(leads_to_script(&pages["/docs/runbook"]));
    let mut followed = 0;
    for (path, page) in &pages {
        for link in attributes(page, "href").into_iter().filter(|link| !link.contains("://")) {
            let (to, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = if to.is_empty() { path.as_str() } else { to };
            if to.starts_with("/reference") || to == SCRIPT || to == EXPORTS_SCRIPT {
                continue;
            }
            let target = pages.get(to).unwrap_or_else(|| panic!("{path}: {link} leads nowhere"));
            // A link writes letters such as é in percents.
            let written =
                |id: &str| reqwest::Url::parse(&format!("http://a/#{id}")).unwrap().fragment() == Some(anchor);
            let is_there = anchor.is_empty() || attributes(target, "id").into_iter().any(written);
            assert!(is_there, "{path}: {link} leads to no heading");
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed} links");
    world.send(Method::GET, "/docs/nothing", &[], "").await.refused(404, "not_found");
}
