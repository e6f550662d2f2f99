//! PIX codes, read by a third-party parser: it must find the data of the charge in each code.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

/// Names, cities and how a code has them: ASCII, cut to 25 and 15 characters.
const MERCHANTS: [(&str, &str, &str, &str); 5] = [
    ("Loja Azul", "São Paulo", "Loja Azul", "Sao Paulo"),
    ("Padaria e Confeitaria Três Irmãos Ltda", "São José do Rio Preto", "Padaria e Confeitaria Tre", "Sao Jose do Rio"),
    ("Ação & Cia. 6304", "Ji-Paraná", "Acao & Cia. 6304", "Ji-Parana"),
    ("X", "Y", "X", "Y"),
    ("喜 Sushi", "", "Sushi", "SAO PAULO"),
];

const AMOUNTS: [&str; 7] = ["0.01", "1", "9.9", "10.00", "54.00", "100000.01", "9999999999.99"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pix_code_is_read_by_another_parser() {
    let Some(mut command) = tool::node("pix-utils") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let (mut codes, mut expected) = (Vec::new(), Vec::new());
    for (name, city, shown_name, shown_city) in MERCHANTS {
        let merchant = json!({"name": name, "city": city, "document": "12345678909"});
        let merchant = post(&server.operations, "/ops/merchants", OPS_TOKEN, &merchant).await;
        let keys = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
        let key = post(&server.operations, &keys, OPS_TOKEN, &json!({})).await;
        let key = key["api_key"].as_str().unwrap();
        for valor in AMOUNTS {
            let body = json!({"valor": valor, "nome": "Maria", "cpf": "12345678909"});
            let charge = post(&server.public, "/api/pix", key, &body).await;
            codes.push(charge["pixCopiaECola"].as_str().unwrap().to_owned());
            expected.push((shown_name, shown_city, charge));
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/pix_codes.js");
    command.arg(script).args(&codes);
    let said = tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    let read: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(read.len(), codes.len());
    for ((code, read), (name, city, charge)) in codes.iter().zip(&read).zip(&expected) {
        assert_eq!(read["error"], Value::Null, "{code}");
        let fields = ["type", "merchantName", "merchantCity", "amount", "txid"].map(|field| &read[field]);
        assert_eq!(fields, [&json!("DYNAMIC"), &json!(name), &json!(city), &charge["valor"], &json!("***")], "{code}");
        let txid = charge["txid"].as_str().unwrap();
        assert!(read["url"].as_str().unwrap().contains(txid), "{code} leads to its charge");
    }
}

async fn post(base: &str, path: &str, credential: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("{base}{path}")).bearer_auth(credential).json(body);
    request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
}

/// The image of a charge, drawn by a browser, holds the code of the charge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_image_of_a_pix_code_is_read_by_another_reader() {
    let (Some(mut browser), Some(mut reader)) = (tool::program("chromium"), tool::python("zxingcpp, PIL")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(&folder.path().join("data"))).await.unwrap();
    let merchant = json!({"name": MERCHANTS[1].0, "city": MERCHANTS[1].1, "document": "12345678909"});
    let merchant = post(&server.operations, "/ops/merchants", OPS_TOKEN, &merchant).await;
    let keys = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
    let key = post(&server.operations, &keys, OPS_TOKEN, &json!({})).await;
    let key = key["api_key"].as_str().unwrap();
    let charge = json!({"valor": "9999999999.99", "nome": "Maria", "cpf": "12345678909"});
    let charge = post(&server.public, "/api/pix", key, &charge).await;
    let image = format!("{}/api/charges/{}/qr.svg", server.public, charge["txid"].as_str().unwrap());
    let image = reqwest::Client::new().get(image).bearer_auth(key).send().await.unwrap();
    let image = image.error_for_status().unwrap().bytes().await.unwrap();
    std::fs::write(folder.path().join("qr.svg"), image).unwrap();
    browser.current_dir(folder.path()).args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    browser.args(["--user-data-dir=profile", "--window-size=600,600", "--screenshot=qr.png", "qr.svg"]);
    tool::run(browser, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    reader.current_dir(folder.path()).args(["-c", include_str!("qr_codes.py"), "qr.png"]);
    let read = tool::run(reader, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(read, format!("QRCode {}\n", charge["pixCopiaECola"].as_str().unwrap()));
}
