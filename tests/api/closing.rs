//! Closing of a month: what reconciliations found in its days, and what none of them covers.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, NaiveDate, Utc};
use serde_json::{Value, json};

use crate::closed_periods::{local, next_month};
use crate::console::Browser;
use crate::reconciliations::files;
use crate::world::*;

const CSV: &str = "text/csv";
const PIX: &str = "application/json";
const OFX: &str = "application/x-ofx";

/// The counts of a kind that are open in a month.
async fn open(world: &World, month: DateTime<Utc>, kind: &str) -> BTreeMap<String, u64> {
    let period = world.ops_get(&format!("/ops/periods/{}", local(month).format("%Y-%m"))).await.expect(200);
    let items = period["open"].as_array().unwrap().iter().filter(|item| item["kind"] == kind);
    items.map(|item| (text(&item["name"]), item["count"].as_u64().unwrap())).collect()
}

fn counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// A day early in the month that begins next.
async fn early_in_a_month(world: &World) -> DateTime<Utc> {
    let now = world.advance(0).await;
    early_after(world, now).await
}

/// A day early in the month after one.
async fn early_after(world: &World, month: DateTime<Utc>) -> DateTime<Utc> {
    world.advance_to(next_month(month) + Duration::days(1)).await;
    world.advance(0).await
}

async fn debit(merchant: &Merchant<'_>) {
    let debit = with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
    merchant.post("/api/card", &debit).await.expect(201);
}

/// A file of the acquirer counts in the month of its payments, whenever it is compared, until an
/// operator says that it is a wrong one.
#[tokio::test]
async fn a_file_counts_in_the_month_of_its_payments_until_it_is_dismissed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    debit(&merchant).await;
    world.advance(5 * DAY).await;
    let [file] = files(&world, "acquirer", "csv").try_into().unwrap();
    let wrong = file.replace(",299,9701", ",298,9702");
    assert_ne!(file, wrong);
    let later = early_after(&world, month).await;
    let found = world.reconcile(CSV, "", wrong.clone()).await.expect(200);
    assert_eq!((&found["differs"], &found["from"]), (&json!(1), &found["findings"][0]["ours"]["paid_on"]));
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[("acquirer", 1)]));
    assert_eq!(open(&world, later, "unreconciled").await, counts(&[]), "the month in which it was compared");

    let path = format!("/ops/reconciliations/{}/dismiss", text(&found["sha256"]));
    let reason = |reason: &str| json!({"reason": reason});
    world.ops_post(&path, &json!({})).await.refused(400, "validation_failed");
    world.ops_post(&path, &reason(&"x".repeat(501))).await.refused(400, "validation_failed");
    let dismissed = world.ops_post(&path, &reason("Arquivo de outro mês")).await.expect(200);
    let Value::Object(mut rest) = dismissed.clone() else { panic!("{dismissed}") };
    let by = rest.remove("dismissed").unwrap();
    assert_eq!((&by["by"], &by["reason"]), (&json!("operator"), &json!("Arquivo de outro mês")));
    assert!(time(&by["at"]) >= later);
    assert_eq!(Value::Object(rest), found, "all else is as it was");
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));

    world.second_ops_post(&path, &[], &reason("Outra razão")).await.refused(409, "already_decided");
    let path_of_it = path.trim_end_matches("/dismiss");
    assert_eq!(world.ops_get(path_of_it).await.expect(200), dismissed, "the first one stands");
    let listed = world.ops_get("/ops/reconciliations").await.expect(200);
    assert_eq!((&items(&listed)[0]["dismissed"], &listed["total"]), (&by, &json!(1)));
    let unknown = format!("/ops/reconciliations/{}/dismiss", "0".repeat(64));
    world.ops_post(&unknown, &reason("Nenhum")).await.refused(404, "not_found");

    world.reconcile(CSV, "", wrong.clone()).await.refused(409, "already_reconciled");
    let again = world.reconcile(CSV, "?again=true", wrong).await.expect(200);
    assert_eq!(again.get("dismissed"), None);
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[("acquirer", 1)]), "it counts again");
    world.ops_post(&path, &reason("Agora sim")).await.expect(200);
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));
}

/// A statement of the days from one to another, with lines of a day, an amount in reais and an id.
fn statement([from, to]: [NaiveDate; 2], lines: &[(NaiveDate, &str, &str)]) -> String {
    let short = |day: NaiveDate| day.format("%Y%m%d");
    let line = |(day, amount, id): &(NaiveDate, &str, &str)| {
        format!("<STMTTRN><DTPOSTED>{}<TRNAMT>{amount}<FITID>{id}<MEMO>EXTRATO</STMTTRN>", short(*day))
    };
    let lines: String = lines.iter().map(line).collect();
    format!(
        "<OFX><STMTRS><ACCTID>777-7<BANKTRANLIST><DTSTART>{}<DTEND>{}{lines}</BANKTRANLIST></STMTRS></OFX>",
        short(from),
        short(to)
    )
}

/// Who downloads the days from the first of the month on each time has the same lines several
/// times: of each day the newest statement counts.
#[tokio::test]
async fn the_lines_of_a_day_count_once_however_often_the_bank_shows_it() {
    let world = World::sandbox().await;
    let month = early_in_a_month(&world).await;
    let [first, second, third] = [0, 1, 2].map(|days| local(month + Duration::days(days)).date_naive());
    let fees = [(first, "-1.00", "F1"), (second, "-2.00", "F2"), (third, "-3.00", "F3")];
    let of = async |days: [NaiveDate; 2], lines: &[(NaiveDate, &str, &str)]| {
        world.advance(1).await;
        let result = world.reconcile(OFX, "?account=own", statement(days, lines)).await.expect(200);
        format!("/ops/reconciliations/{}", text(&result["sha256"]))
    };
    let open_now = async || open(&world, month, "unreconciled").await;
    of([first, second], &fees[..2]).await;
    assert_eq!(open_now().await, counts(&[("bank", 2)]));
    let longer = of([second, third], &fees[1..]).await;
    assert_eq!(open_now().await, counts(&[("bank", 3)]), "the first day is in the first one alone");
    let listed = world.ops_get("/ops/reconciliations?open=true").await.expect(200);
    let ids =
        |result: &Value| result["findings"].as_array().unwrap().iter().map(|of| text(&of["id"])).collect::<Vec<_>>();
    assert_eq!(items(&listed).iter().map(ids).collect::<Vec<_>>(), [vec!["F2", "F3"], vec!["F1"]]);
    world.advance(1).await;
    let again =
        world.reconcile(OFX, "?account=own&again=true", statement([first, second], &fees[..2])).await.expect(200);
    assert!(again["first_made_at"].as_str() < again["made_at"].as_str(), "{again}");
    assert_eq!([0, 1].map(|at| again["findings"][at].get("replaced_by").cloned()), [None, Some(json!(longer[21..]))]);
    let listed = world.ops_get("/ops/reconciliations?open=true").await.expect(200);
    let newest = items(&listed).iter().map(ids).collect::<Vec<_>>();
    assert_eq!(newest, [vec!["F1"], vec!["F2", "F3"]], "a file that is compared again is no newer one");
    let whole = of([first, third], &fees).await;
    assert_eq!(open_now().await, counts(&[("bank", 3)]));
    assert_eq!(world.ops_get("/ops/reconciliations?open=true").await.expect(200)["total"], 1);
    for (wrong, left) in [(whole, 3), (longer, 2)] {
        world.ops_post(&format!("{wrong}/dismiss"), &json!({"reason": "Outra conta"})).await.expect(200);
        assert_eq!(open_now().await, counts(&[("bank", left)]), "what is dismissed is in the place of nothing");
    }
}

/// A payment that the bank posts on the next day, in the statement of that day.
#[tokio::test]
async fn what_one_statement_lacks_the_next_one_has() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    merchant.paid_pix(&pix("80.00")).await;
    let [first, second, third] = [0, 1, 2].map(|days| local(month + Duration::days(days)).date_naive());
    let of = async |day: NaiveDate, lines: &[(NaiveDate, &str, &str)]| {
        world.advance(1).await;
        world.reconcile(OFX, "?account=pix", statement([day, day], lines)).await.expect(200)
    };
    let open_now = async || open(&world, month, "unreconciled").await;
    let lacking = of(first, &[]).await;
    assert_eq!((&lacking["only_ours"], lacking.get("arrived")), (&json!(1), None));
    assert_eq!(open_now().await, counts(&[("bank", 1)]));
    let next = of(second, &[(second, "80.00", "L1")]).await;
    let [line] = &next["matched_lines"].as_array().unwrap()[..] else { panic!("{next}") };
    let days = [&line["ours"]["paid_on"], &line["theirs"]["paid_on"]];
    assert_eq!((days, &next["findings"]), ([&json!(first.to_string()), &json!(second.to_string())], &json!([])));
    let arrived = json!({"kind": "pix", "id": line["id"], "paid_on": days[0], "posted_on": days[1]});
    assert_eq!(next["arrived"], json!([arrived]));
    assert_eq!(open_now().await, counts(&[]), "the first one lacks it no longer");
    world.advance(1).await;
    let file = statement([second, second], &[(second, "80.00", "L1")]);
    let same = world.reconcile(OFX, "?account=pix&again=true", file).await.expect(200);
    assert_eq!((&same["matched"], &same["arrived"]), (&json!(1), &next["arrived"]), "compared once more");
    world.advance(1).await;
    let longer = statement([second, third], &[(second, "80.00", "L1")]);
    let longer = world.reconcile(OFX, "?account=pix", longer).await.expect(200);
    assert_eq!((&longer["matched"], &longer["arrived"]), (&json!(1), &next["arrived"]), "downloaded once more");
    world.advance(1).await;
    let file = statement([first, first], &[]);
    assert_eq!(world.reconcile(OFX, "?account=pix&again=true", file).await.expect(200)["only_ours"], 1);
    assert_eq!(open_now().await, counts(&[]), "nor when it is compared again");
    // Only once: another line of the amount is no payment of the books.
    assert_eq!(of(third, &[(third, "80.00", "L2")]).await["only_theirs"], 1);
    let again = of(second, &[(second, "80.00", "L1"), (second, "80.00", "L3")]).await;
    assert_eq!((&again["matched"], &again["only_theirs"]), (&json!(0), &json!(2)), "{again}");
    assert_eq!(open_now().await, counts(&[("bank", 3)]));
    for wrong in [next, longer] {
        let path = format!("/ops/reconciliations/{}/dismiss", text(&wrong["sha256"]));
        world.ops_post(&path, &json!({"reason": "Outra conta"})).await.expect(200);
    }
    assert_eq!(open_now().await, counts(&[("bank", 4)]), "without the line it is open again");
}

/// December may be compared before November: its line of a payment of November agrees once November
/// is compared, without its file.
#[tokio::test]
async fn a_statement_that_was_compared_first_is_completed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    merchant.paid_pix(&pix("80.00")).await;
    let [first, second, third] = [0, 1, 2].map(|days| local(month + Duration::days(days)).date_naive());
    let compare = async |days, lines: &[(NaiveDate, &str, &str)]| {
        world.advance(1).await;
        world.reconcile(OFX, "?account=pix", statement(days, lines)).await.expect(200)
    };
    let later =
        compare([second, third], &[(second, "80.00", "L1"), (third, "-1.00", "F1"), (third, "9.00", "L2")]).await;
    let path = format!("/ops/reconciliations/{}", text(&later["sha256"]));
    let counted = |of: &Value| ["matched", "only_theirs", "only_ours"].map(|name| of[name].as_u64().unwrap());
    assert_eq!(counted(&later), [0, 3, 0]);
    for finding in [1, 2] {
        let reason = json!({"finding": finding, "reason": format!("Linha {finding}")});
        world.ops_post(&format!("{path}/explain"), &reason).await.expect(200);
    }
    let earlier = compare([first, first], &[]).await;
    assert_eq!((counted(&earlier), &earlier["findings"][0]["replaced_by"]), ([0, 0, 1], &later["sha256"]), "{earlier}");
    let completed = world.ops_get(&path).await.expect(200);
    assert_eq!(counted(&completed), [1, 2, 0], "{completed}");
    let [line] = &completed["matched_lines"].as_array().unwrap()[..] else { panic!("{completed}") };
    let days = [&line["ours"]["paid_on"], &line["theirs"]["paid_on"]].map(text);
    assert_eq!((days, &line["line"]), ([first, second].map(|day| day.to_string()), &later["findings"][0]["line"]));
    let explained = completed["explanations"].as_array().unwrap().iter();
    let explained: Vec<_> = explained.map(|of| (of["finding"].as_u64().unwrap(), text(&of["reason"]))).collect();
    assert_eq!(explained, [(0, "Linha 1".to_owned()), (1, "Linha 2".to_owned())], "explanations follow their lines");
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));
    let again = statement([second, third], &[(second, "80.00", "L1"), (third, "-1.00", "F1"), (third, "9.00", "L2")]);
    world.advance(1).await;
    let again = world.reconcile(OFX, "?account=pix&again=true", again).await.expect(200);
    assert_eq!([&again["arrived"], &again["explanations"]], [&completed["arrived"], &completed["explanations"]]);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/reconciliations/{}", text(&earlier["sha256"]))).await;
    page.has(&["In another file", &format!("href=\"/console/reconciliations/{}\"", text(&later["sha256"]))]);
    assert!(!page.html.contains("?finding=0#explain"), "{}", page.html);
    let file = world.ops_get(&format!("/ops/reconciliations/{}?format=csv", text(&earlier["sha256"]))).await;
    assert!(file.text.lines().nth(1).unwrap().contains(",replaced,"), "{}", file.text);
}

/// A late line of another amount is a difference, in each of the downloads that have it; it counts
/// once.
#[tokio::test]
async fn a_late_line_that_differs_counts_in_the_newest_download() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    merchant.paid_pix(&pix("80.00")).await;
    let [first, second, third] = [0, 1, 2].map(|days| local(month + Duration::days(days)).date_naive());
    let compare = async |days, lines: &[(NaiveDate, &str, &str)]| {
        world.advance(1).await;
        world.reconcile(OFX, "?account=pix", statement(days, lines)).await.expect(200)
    };
    let id = text(&compare([first, first], &[]).await["findings"][0]["id"]);
    for days in [[second, second], [second, third]] {
        let found = compare(days, &[(second, "79.00", &id)]).await;
        assert_eq!((&found["differs"], found["arrived"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{found}");
        assert_eq!(open(&world, month, "unreconciled").await, counts(&[("bank", 1)]));
    }
}

/// A download that begins with the line of an earlier booking agrees, as the one before it did; and
/// so does the one after a file whose last day was not over.
#[tokio::test]
async fn downloads_that_overlap_agree_on_a_late_line() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let month = early_in_a_month(&world).await;
    merchant.paid_pix(&pix("80.00")).await;
    let [first, second, third] = [0, 1, 2].map(|days| local(month + Duration::days(days)).date_naive());
    let compare = async |file: String| {
        world.advance(1).await;
        world.reconcile(OFX, "?account=pix", file).await.expect(200)
    };
    let end = first.format("<DTEND>%Y%m%d").to_string();
    let midnight = statement([first, first], &[]).replace(&end, &format!("{end}000000[-3:BRT]"));
    let open_day = compare(midnight).await;
    assert_eq!((&open_day["only_ours"], &open_day["undecided"]), (&json!(0), &json!(1)), "{open_day}");
    let files =
        [[second, second], [first, second], [second, third]].map(|days| statement(days, &[(second, "80.00", "L1")]));
    for file in files {
        let found = compare(file).await;
        let arrived = found["arrived"].as_array().map(Vec::len);
        assert_eq!((&found["matched"], &found["findings"], arrived), (&json!(1), &json!([]), Some(1)), "{found}");
    }
    assert_eq!(open(&world, month, "unreconciled").await, counts(&[]));
}

/// The month lists batches, days of the bank accounts and days of PIX payments until a file of each
/// was compared; a dismissed one covers nothing.
#[tokio::test]
async fn a_month_lists_what_no_file_covers() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana Prado", 1).await;
    let month = early_in_a_month(&world).await;
    for _ in 0..2 {
        debit(&merchant).await;
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
        merchant.paid_pix(&pix("10.00")).await;
        world.advance(7 * DAY).await;
    }
    // A day on which the PIX account only pays.
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.ops_post(&format!("/ops/withdrawals/{withdrawal}/approve"), &json!({})).await.expect(200);
    let [settlement, bank_pix] = ["Assets:Bank:Settlement", "Assets:Bank:Pix"];
    let later = early_after(&world, month).await;
    let paid = files(&world, "bank-pix", "ofx").len() as u64;
    let settled = files(&world, "bank-settlement", "ofx").len() as u64;
    assert!(paid + settled == 5, "two batches, two days of payments and the withdrawal");
    let all = counts(&[("acquirer", 2), ("pix", 2), (settlement, settled), (bank_pix, paid)]);
    assert_eq!(open(&world, month, "uncompared").await, all);
    assert_eq!(open(&world, later, "uncompared").await, counts(&[]));
    assert_eq!(open(&world, month - Duration::days(40), "uncompared").await, counts(&[]), "before the first Record");

    // A fee that is dated to a day on which nothing else moved: after the batch of the first debit,
    // whatever weekend or holiday lies between, and before the second one.
    let day = (local(month) + Duration::days(6)).format("%Y-%m-%d").to_string();
    let entry = json!({"debit": "Expenses:Bank:Fees", "credit": settlement, "amount": 250, "reason": "Tarifa",
        "reference": "EXTRATO-1", "effective_date": day});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    let open_of = async |name: &str| open(&world, month, "uncompared").await.get(name).copied().unwrap_or_default();
    assert_eq!(open_of(settlement).await, settled + 1);

    let batches = files(&world, "acquirer", "csv");
    world.reconcile(CSV, "", batches[0].clone()).await.expect(200);
    assert_eq!(open_of("acquirer").await, 1);
    world.reconcile(CSV, "", batches[1].clone()).await.expect(200);
    for list in files(&world, "pix", "json") {
        world.reconcile(PIX, "", list).await.expect(200);
    }
    assert_eq!([open_of("acquirer").await, open_of("pix").await], [0, 0]);
    assert_eq!([open_of(settlement).await, open_of(bank_pix).await], [settled + 1, paid], "the bank's are apart");
    for statement in files(&world, "bank-pix", "ofx") {
        world.reconcile(OFX, "?account=pix", statement).await.expect(200);
    }
    let mut last = Value::Null;
    for statement in files(&world, "bank-settlement", "ofx") {
        last = world.reconcile(OFX, "?account=settlement", statement).await.expect(200);
    }
    assert_eq!(open(&world, month, "uncompared").await, counts(&[(settlement, 1)]), "the fee's day");
    let path = format!("/ops/reconciliations/{}/dismiss", text(&last["sha256"]));
    world.ops_post(&path, &json!({"reason": "Outra conta"})).await.expect(200);
    assert_eq!(open(&world, month, "uncompared").await, counts(&[(settlement, 2)]));
    world.check_books().await;
}
