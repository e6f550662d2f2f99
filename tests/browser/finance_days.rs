//! Two days of finance, by clicks alone: the files of a day, whose wrong lines are explained, and
//! the end of a month. Each goes through once with JavaScript at 1280 pixels, and once without at
//! 390.

use std::process::Command;

use chrono::{Datelike, Months};
use serde_json::json;

use crate::chromium::Browser;
use crate::operator_days::{TURNS, judge};
use crate::sample_server::{ANA, RUI, SampleServer};

/// A fee in the statement of a day.
const FEE: &str = "<STMTTRN>\r\n<TRNTYPE>DEBIT\r\n<DTPOSTED>{day}120000[-3:BRT]\r\n<TRNAMT>-12.3{turn}\r\n\
    <FITID>TAR-{turn}\r\n<MEMO>TARIFA\r\n</STMTTRN>\r\n";

/// Signs another operator in, by the button that signs out. A session begins in English.
async fn change_operator(browser: &Browser, shop: &SampleServer, token: &str) {
    browser.click("header form[method=post] button").await;
    shop.sign_in_as(browser, token).await;
    browser.open(&format!("{}/console?lang=pt", shop.operations())).await;
}

/// The links of the page that a selector names.
async fn links(browser: &Browser, selector: &str) -> Vec<String> {
    let script =
        format!("return [...document.querySelectorAll({})].map(link => link.getAttribute('href'))", json!(selector));
    serde_json::from_value(browser.run(&script).await).unwrap()
}

/// The files of the bank, the PIX institution and the acquirer, with a wrong line each. Every line
/// is explained, by an entry that the second operator approves or by a reason, and reads so at
/// once.
#[tokio::test]
async fn finances_daily() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.paid_pix().await;
    // The acquirer pays the card after 30 days.
    shop.advance(35).await;
    shop.sign_in(&browser).await;
    browser.open(&format!("{}/console?lang=pt", shop.operations())).await;
    for (number, turn) in TURNS.into_iter().enumerate() {
        browser.javascript(turn.0).await;
        browser.view(turn.1).await;
        // Another end of the file makes it another file. The second statement has the first fee
        // too.
        let end = "\r\n".repeat(number + 1);
        let bank = shop.file_of("bank-pix", |text| {
            let day = &text[text.find("<DTSTART>").unwrap() + 9..][..8];
            let fees: String = (0..=number).map(|turn| FEE.replace("{turn}", &turn.to_string())).collect();
            text.replace("</BANKTRANLIST>", &format!("{}</BANKTRANLIST>", fees.replace("{day}", day))) + &end
        });
        let pix = shop.file_of("pix", |text| text.replacen("\"100.00\"", "\"100.01\"", 1) + &end);
        let acquirer = shop.file_of("acquirer", |text| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines[1] = lines[1].replacen("installment,1,", "installment,9,", 1);
            lines.join("\r\n") + &end
        });
        let mut results = Vec::new();
        for (file, expected) in [(&bank, "Só no arquivo"), (&pix, "Diverge"), (&acquirer, "Só nos livros")] {
            browser.click("nav a[href='/console/reconciliations']").await;
            browser.type_into("#file", file.to_str().unwrap()).await;
            // The account of a number that is new is named; from then on the number is enough.
            if number == 0 && *file == bank {
                browser.type_into("#account", "Banco conta PIX").await;
            }
            browser.click("section[aria-labelledby=compare] button").await;
            browser.has("O arquivo foi conferido.").await;
            browser.has(expected).await;
            judge(&browser, turn, "result").await;
            let result = browser.place().await;
            for link in links(&browser, "td a[href*='finding=']").await {
                browser.click(&format!("td a[href='{link}']")).await;
                judge(&browser, turn, "explanation").await;
                // The fee, and once what the institution has more, are booked.
                if *file == bank || *file == pix && number == 1 {
                    let amount = if *file == bank { format!("12,3{number}") } else { "0,01".to_owned() };
                    assert_eq!(browser.run("return document.querySelector('#amount').value").await, amount);
                    browser.type_into("#reason", "Diferença do dia").await;
                    browser.click("section[aria-labelledby=ask] button").await;
                    browser.has("espera outro operador").await;
                } else {
                    browser.type_into("#explain-reason", "A instituição corrige amanhã").await;
                    browser.click("section[aria-labelledby=by-reason] button").await;
                    browser.has("A linha foi explicada.").await;
                }
                assert_eq!(browser.place().await, result);
            }
            results.push((result, links(&browser, "td a[href^='/console/queue/']").await));
        }
        assert_eq!(results.iter().map(|(_, entries)| entries.len()).sum::<usize>(), 1 + number, "{results:?}");

        change_operator(&browser, &shop, RUI).await;
        for (result, entries) in &results {
            for entry in entries {
                browser.click("nav a[href='/console/queue']").await;
                browser.click(&format!("a[href='{entry}']")).await;
                browser.has("Diferença do dia").await;
                browser.click("section[aria-labelledby=approve] button").await;
                browser.has("Decidido.").await;
            }
            browser.click("nav a[href='/console/reconciliations']").await;
            browser.click(&format!("a[href='{result}']")).await;
            browser.has("explicada").await;
            let shown = browser.text().await;
            assert!(!shown.contains("espera outro operador"), "{shown}");
            judge(&browser, turn, "explained").await;
        }
        change_operator(&browser, &shop, ANA).await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    shop.stop();
}

/// Sums of the debits and of the credits of a mapped file of Domínio, centavos, and its histories.
fn sums_of(mapped: &str) -> ([i64; 2], Vec<String>) {
    let (mut sums, mut histories) = ([0; 2], Vec::new());
    for line in mapped.lines() {
        let cells: Vec<_> = line.split(';').collect();
        let amount: i64 = cells[3].replace([',', '.'], "").parse().unwrap();
        for (sum, account) in sums.iter_mut().zip(&cells[1..3]) {
            *sum += if account.is_empty() { 0 } else { amount };
        }
        histories.push(cells[4].to_owned());
    }
    (sums, histories)
}

/// Closing by two operators, trial balance, general ledger, the fees to invoice, and the books for
/// hledger and in the company's own chart, as files.
#[tokio::test]
async fn finances_month_end() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    let first = chrono::Utc::now().date_naive().with_day(1).unwrap();
    // Two months are over.
    shop.advance(75).await;
    shop.sign_in(&browser).await;
    browser.open(&format!("{}/console?lang=pt", shop.operations())).await;
    for (number, turn) in TURNS.into_iter().enumerate() {
        browser.javascript(turn.0).await;
        browser.view(turn.1).await;
        for (report, expected) in
            [("trial-balance", "Saldo final"), ("general-ledger", "Saldo anterior"), ("fees", "MDR")]
        {
            browser.click("nav a[href='/console/reports']").await;
            browser.click(&format!("a[href='/console/reports?report={report}']")).await;
            browser.has(expected).await;
            judge(&browser, turn, report).await;
            let (name, file) = browser.download("a[href*='format=xlsx']").await;
            assert!(name.starts_with(report) && name.ends_with(".xlsx") && file.starts_with(b"PK"), "{name}");
        }
        let (name, fees) = browser.download("a[href*='format=csv-ptbr']").await;
        let fees = String::from_utf8(fees).unwrap();
        assert!(name.ends_with(".csv") && fees.contains("Lojista;") && fees.contains("MDR"), "{name}: {fees}");

        browser.click("nav a[href='/console/exports']").await;
        judge(&browser, turn, "exports").await;
        browser.type_into("#ledger", "P-all").await;
        browser.type_into("#format", "hledger").await;
        let (name, journal) = browser.download("form[action='/console/exports/file'] button").await;
        assert!(name.ends_with(".journal") || name.ends_with(".hledger"), "{name}");
        let debits = read_by_hledger(&journal);

        browser.click("a[href^='/console/exports?sample=Dom']").await;
        browser.click("section[aria-labelledby=mapped] button").await;
        browser.has("O arquivo está em preparo.").await;
        let made = "section[aria-labelledby=jobs] tbody tr:first-child a[href$='/file']";
        for _ in 0..600 {
            if !links(&browser, made).await.is_empty() {
                break;
            }
            browser.click("nav a[href='/console/exports']").await;
        }
        let (name, mapped) = browser.download(made).await;
        let ([own, credited], histories) = sums_of(&String::from_utf8(mapped).unwrap());
        assert_eq!((own, credited), (debits, debits), "{name}: every posting is in the company's accounts");
        assert!(histories.iter().any(|history| history.starts_with("PIX pago")), "{histories:?}");

        let month = first.checked_add_months(Months::new(number as u32)).unwrap().format("%Y-%m");
        for (token, expected) in [(ANA, "pedido"), (RUI, "fechado")] {
            if token == RUI {
                change_operator(&browser, &shop, token).await;
            }
            browser.click("nav a[href='/console/house']").await;
            browser.click("main a[href='/console/periods']").await;
            browser.click(&format!("main a[href='/console/periods/{month}']")).await;
            judge(&browser, turn, "month").await;
            browser.click("section[aria-labelledby=close] button").await;
            browser.has(expected).await;
        }
        change_operator(&browser, &shop, ANA).await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    shop.stop();
}

/// The sum of the debits of a journal, centavos, as hledger reads it; it must find no defect.
fn read_by_hledger(journal: &[u8]) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("main.hledger");
    std::fs::write(&path, journal).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new("hledger").arg("-f").arg(&path).args(arguments).output();
        let output = output.expect("hledger reads the export: apt-get install hledger");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["check", "-s"]);
    let printed = run(&["print", "-O", "json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let postings = printed.as_array().unwrap().iter().flat_map(|entry| entry["tpostings"].as_array().unwrap());
    let amounts = postings.flat_map(|posting| posting["pamount"].as_array().unwrap()).map(|amount| {
        let quantity = &amount["aquantity"];
        let (digits, places) =
            (quantity["decimalMantissa"].as_i64().unwrap(), quantity["decimalPlaces"].as_u64().unwrap());
        digits * 10_i64.pow(2 - u32::try_from(places).unwrap())
    });
    amounts.filter(|amount| *amount > 0).sum()
}
