//! A page that is slow, held up on purpose by a server within this process.

use std::sync::Arc;

use centavo::config::{Args, Command};
use centavo::serve::{self, Running};
use clap::Parser;
use serde_json::json;

use crate::chromium::{Browser, ENTER, VIEWS};

async fn server(data: &str) -> Running {
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--sandbox", "on"];
    let Command::Serve { args, .. } = Args::parse_from(fixed.into_iter().chain(["--data", data])).command else {
        unreachable!("serve was asked for");
    };
    serve::start(args.settings().unwrap(), |_, _| {}).await.unwrap()
}

/// It tells that it reads, without defects, and follows by itself: with JavaScript and without.
#[tokio::test]
async fn a_slow_page_follows_by_itself() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let running = server(&folder.path().to_string_lossy()).await;
    let token = std::fs::read_to_string(folder.path().join("operator.token")).unwrap();
    let host = format!("http://{}", running.operations);
    let made = testkit::callers::client().post(format!("{host}/ops/merchants")).bearer_auth(token.trim());
    let made = made.json(&json!({"name": "Loja Azul", "document": "11222333000181"})).send().await.unwrap();
    assert_eq!(made.status(), 201);
    browser.open(&format!("{host}/console/sign-in?lang=en")).await;
    browser.type_into("#token", &format!("{}{ENTER}", token.trim())).await;
    let is_reading = "return document.getElementById('reading') !== null";
    for is_on in [true, false] {
        browser.javascript(is_on).await;
        let held = Arc::clone(&running.app.reading_past).acquire_owned().await.unwrap();
        let address = format!("{host}/console/trial-balance?by=ledger&at=1&lang=en&page={}", 1 + u8::from(is_on));
        browser.look(&address).await;
        assert_eq!(browser.run(is_reading).await, json!(true));
        browser.has("This page reads the past from the disk.").await;
        if is_on {
            let mut defects = Vec::new();
            for view in VIEWS {
                browser.view(view).await;
                // What is judged must not be replaced meanwhile.
                browser.run("window.stop()").await;
                defects.extend(browser.defects().await);
                browser.keep_picture(&format!("slow-{}-{}", view.scheme, view.width)).await;
            }
            assert_eq!(defects, [""; 0]);
            browser.look(&address).await;
        }
        drop(held);
        browser.until("return document.getElementById('reading') === null").await;
        browser.has("Debits equal credits.").await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    running.stop().await;
}
