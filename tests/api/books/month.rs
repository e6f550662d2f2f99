//! A month of a merchant's life, over HTTP: every event of the accounting manual that can come from
//! outside.

use std::fs::OpenOptions;
use std::io::Write as _;

use reqwest::Method;
use serde_json::{Map, Value, json};
use wire::timestamp::day_of;

use crate::world::{
    APPROVED, DAY, Merchant, REFUSED, SILENT, World, card, cnpj, cpf, individual, items, pix, text, with, with_splits,
    without,
};

/// Names that try to get out of the line that they stand in.
pub(crate) const HOSTILE: [&str; 3] =
    ["\"; include \"/etc/passwd", "=cmd('calc')!A0 \u{202e}gpj.exe", "Ana | * ! ; @ 2026-01-01 open Assets:Gift BRL"];

/// What happens, a line a step; `ana` and `bia` are recipients, `ana=1000` is a split or what is
/// taken back of one, and a refund or a dispute is of the last charge that was paid. One more event
/// is one more line here, and one arm in [`Shop::step`].
const MONTH: &[&str] = &[
    "pix 80.00 ana=1000",
    "pix 12.34",
    "card 10000 ana=2000 bia=1500",
    "card 699",
    "refused 5000",
    "silent 7000 bia=700",
    "days 1",
    "unpaid 30.00 ana=500",
    "cancelled 30.00",
    "late 15.00 ana=20",
    "withdraw ana approve",
    "cashout 3000 ana@example.com",
    "cashout 2000 fail@example.com",
    "cashout 1500 return@example.com",
    // The fees exceed the seller's part, and Available covers it.
    "card 10000 ana=9999",
    // Available does not cover it any more: a deficit, which the next PIX repays.
    "card 900000 bia=899999",
    "pix 400.00 bia=1",
    "days 2",
    // A take-back is paid from the pending rest of that split, or from Available when the split is
    // available already.
    "card 10000 ana=2000 bia=1500",
    "anticipate ana 2",
    "refund 4000 ana=800 bia=500",
    "days 1",
    "withdraw ana reject",
    "refund 1000",
    "unrefunded 500",
    "commission true",
    "refund 1000",
    "commission false",
    "days 1",
    // Held while it is pending, and given back there; held from Available, and lost.
    "card 8000 bia=100",
    "dispute 1000 release",
    "pix 90.00 bia=800",
    "dispute 600 accept",
    // The rest is released by the Record that accepts a part.
    "dispute 500 accept 200",
    // Paid out before it is taken back: the debt waits for the next rise.
    "withdraw bia approve",
    "refund 2000 bia=300",
    "days 3",
    "pix 20.00 bia=500",
    "subscription 4990 2000 bia=500",
    "days 5",
    "card 12345 ana=45",
    "days 25",
    "pix 50.00 ana=100 bia=100",
    "withdraw ana wait",
    "days 10",
    "unpaid 10.00",
];

/// The posting lines of the accounting manual, each with its fact and a posting that only this line
/// has: ledger, side, account.
pub(crate) const EVENTS: &[(&str, &str, &str)] = &[
    ("card captured", "card_captured", "M credit Income:Sales:Card"),
    ("card captured with splits", "card_captured", "R credit Income:Splits:Card"),
    ("PIX paid", "pix_paid", "M credit Income:Sales:Pix"),
    ("PIX paid with splits", "pix_paid", "R credit Income:Splits:Pix"),
    ("recurring cycle with initial fee", "card_captured", "M credit Income:Sales:InitialFee"),
    ("30 days, the merchant's", "matured", "M debit Assets:Platform:Available"),
    ("30 days, a recipient's", "matured", "R debit Assets:Platform:Available"),
    ("acquirer pays us", "acquirer_settled", "P debit Assets:Bank:Settlement"),
    ("anticipation", "splits_anticipated", "R debit Expenses:Fees:Anticipation"),
    ("withdrawal requested", "withdrawal_requested", "R debit Assets:Platform:Reserved:Withdrawal"),
    ("withdrawal taken by the rail", "withdrawal_paid", "R debit Assets:Transit:Withdrawal"),
    ("withdrawal rejected", "withdrawal_rejected", "R debit Assets:Platform:Available"),
    ("cashout created", "cashout_created", "M debit Assets:Platform:Reserved:Cashout"),
    ("cashout processed", "cashout_processed", "M debit Assets:Transit:Cashout"),
    ("cashout failed", "cashout_failed", "M debit Assets:Platform:Available"),
    ("cashout returned by the bank, the merchant's", "cashout_returned", "M credit Assets:Transit:Cashout"),
    ("cashout returned by the bank, the bank's", "cashout_returned", "P debit Assets:Bank:Pix"),
    ("refund approved, from Pending", "refund_approved", "M credit Assets:Platform:Pending"),
    ("refund approved, from Available", "refund_approved", "M credit Assets:Platform:Available"),
    ("take-back, what the merchant is owed", "refund_approved", "M debit Assets:Receivable:Recipients:R-"),
    ("take-back, what the recipient owes", "refund_approved", "R credit Liabilities:Clawback:M-"),
    ("clawback paid back from Pending", "clawback_recovered", "R credit Assets:Platform:Pending"),
    ("clawback paid back from Available", "clawback_recovered", "R credit Assets:Platform:Available"),
    ("clawback comes to the merchant", "clawback_recovered", "M credit Assets:Receivable:Recipients:R-"),
    ("refund of a card sent", "payer_repaid", "P credit Assets:Acquirer:Receivable"),
    ("refund of a PIX sent", "payer_repaid", "P credit Assets:Bank:Pix"),
    ("refund refused by the rail, the merchant's", "refund_failed", "M debit Assets:Platform:Pending"),
    ("refund refused by the rail, a recipient's", "refund_failed", "R debit Assets:Platform:Pending"),
    ("commission returned, a card's", "refund_approved", "M credit Expenses:Fees:Mdr"),
    ("dispute opened", "dispute_opened", "M debit Assets:Platform:Reserved:Dispute"),
    ("dispute accepted", "dispute_accepted", "M debit Income:Contra:Chargebacks"),
    ("dispute released", "dispute_released", "M debit Assets:Platform:Pending"),
    ("dispute reversed, the merchant's", "dispute_reversed", "M credit Income:Contra:Chargebacks"),
    ("dispute reversed, the bank's", "dispute_reversed", "P debit Assets:Bank:Pix"),
    ("late PIX", "late_pix_received", "P debit Assets:Bank:Pix"),
    ("deficit raised", "card_captured", "M credit Liabilities:Platform:Deficit"),
    ("deficit recovered", "deficit_recovered", "M debit Liabilities:Platform:Deficit"),
    ("withdrawal returned by the bank, the recipient's", "withdrawal_returned", "R credit Assets:Transit:Withdrawal"),
    ("withdrawal returned by the bank, the bank's", "withdrawal_returned", "P debit Assets:Bank:"),
    ("debit card captured", "card_captured", "P debit Assets:Acquirer:Receivable"),
    ("an accepted chargeback, netted later", "dispute_accepted", "P credit Assets:Acquirer:Receivable"),
    ("transfer between banks", "house_entry", "P-house credit Assets:Bank:Own"),
    ("capital", "house_entry", "P-house credit Equity:Capital"),
    ("a fee of the bank", "house_entry", "P-house debit Expenses:Bank:Fees"),
    ("a fee of the acquirer without a charge", "house_entry", "P-house debit Expenses:Acquirer:Fees"),
    ("money that nobody explains", "house_entry", "P-house credit Liabilities:Suspense"),
    ("an installment that was settled before", "acquirer_unexplained", "P-house credit Liabilities:Suspense"),
    ("deficit written off, the merchant's", "deficit_written_off", "M debit Liabilities:Platform:Deficit"),
    ("deficit written off, the platform's loss", "deficit_written_off", "P debit Expenses:Losses:Other"),
    ("goodwill of the house, the merchant's", "adjustment_created", "M debit Assets:Platform:Available"),
    ("goodwill of the house, a recipient's", "adjustment_created", "R debit Assets:Platform:Available"),
    ("goodwill of the house, the platform's loss", "adjustment_created", "P debit Expenses:Losses:Other"),
    ("clawback written off, the recipient's", "clawback_written_off", "R debit Liabilities:Clawback:M-"),
    ("clawback written off, the merchant's loss", "clawback_written_off", "M debit Expenses:Losses:Clawback"),
];

/// Who lives through the month.
struct Shop<'w> {
    merchant: Merchant<'w>,
    /// Ana, Bia, and Caio, whose bank sends transfers back.
    recipients: Vec<String>,
    /// The last charge that was paid.
    charge: String,
    /// Whether refunds give commission back.
    returns_commission: bool,
    /// What was asked for and came about, for an oracle: see `acquirer_oracle.py`.
    story: Vec<Value>,
}

/// Plays the month for a new merchant with hostile names, and gives it.
pub(crate) async fn play(world: &World) -> Merchant<'_> {
    play_lines(world, MONTH.iter().map(|line| (*line).to_owned())).await
}

/// Plays the month and goes on, so that much is open at the end.
pub(crate) async fn play_open(world: &World) -> Merchant<'_> {
    play_lines(world, MONTH.iter().chain(OPEN).map(|line| (*line).to_owned())).await
}

/// What is open at the end: installments, a debit, splits, an anticipation, a refund, disputes.
const OPEN: &[&str] = &[
    "installments 3 10000 ana=2000 bia=1500",
    "days 1",
    "card 9000 bia=900 ana=300",
    "anticipate bia 2",
    "refund 700 ana=100",
    "card 6000 ana=60",
    "dispute 6000 release",
    "card 5000",
    "dispute 2000 accept",
    "card 8000 ana=80",
    "dispute 7000 wait",
    "debit 4000 bia=400",
    "refund 900",
    // What follows by itself has followed.
    "days 0",
];

/// Plays the month, what is open at its end, and what the house and the institutions add to it.
pub(crate) async fn play_wide(world: &World) -> Merchant<'_> {
    play_lines(world, MONTH.iter().chain(OPEN).chain(WIDE).map(|line| (*line).to_owned())).await
}

/// Entries of the house, transfers that the bank returns, a refund that the acquirer refuses,
/// debits and installments, a batch that nets a refund and a chargeback, a debit that the acquirer
/// pays twice, debts that are written off, and at the end, on a Sunday, a debit that is overdue.
const WIDE: &[&str] = &[
    "house Assets:Bank:Own Equity:Capital 500000",
    "house Assets:Bank:Settlement Assets:Bank:Own 120000",
    "house Expenses:Bank:Fees Assets:Bank:Own 350",
    "house Expenses:Acquirer:Fees Assets:Bank:Settlement 500",
    "house Assets:Bank:Pix Liabilities:Suspense 700",
    "house Liabilities:Suspense Assets:Bank:Pix 200",
    "house Assets:Bank:Own Assets:Bank:Settlement 69",
    "returned caio",
    "pix 60.00 caio=2500",
    "withdraw caio approve",
    "cashout 700 return@example.com",
    "card 9000 ana=900",
    "refund 1357 ana=57",
    "days 2",
    "until Mon",
    "debit 4000 bia=400",
    "refund 900",
    "card 8000 ana=80",
    "dispute 600 accept",
    "debit 3000",
    "days 3",
    "paid-twice",
    "installments 3 9000 ana=900",
    "installments 12 120000",
    "days 35",
    // Paid out before it is taken back, and given up; fees beyond all that the merchant has.
    "pix 80.00 bia=1000",
    "withdraw bia approve",
    "refund 4000 bia=800",
    "written-off bia 600",
    "card 90000000 bia=89999999",
    "written-off merchant 500",
    "written-off goodwill 700",
    "written-off goodwill-ana 300",
    "pix 30.00",
    "dispute 1100 reversed",
    "until Fri",
    "debit 5000 bia=50",
    "days 2",
    "unpaid 10.00",
];

/// Parts of a random month. What a part needs, it makes itself. Each month has the first ones.
const PARTS: &[&[&str]] = &[
    &["card {n} ana={s} bia={t}", "refund {r} ana=5"],
    &["pix {a} bia={s}", "refund {r} bia=3"],
    &["installments 3 {n} ana={s}", "days 1", "anticipate ana 7"],
    &["debit {n} bia={t}", "days 4", "refund {r}"],
    &["pix {a} ana={s}"],
    &["card {n} ana={s} bia={t}"],
    &["card {n}"],
    &["installments 3 {n} ana={s}"],
    &["installments 12 {n}", "refund {r}"],
    &["card {n} bia={t}", "days 2", "refund {r}"],
    &["card {n}", "dispute {r} accept"],
    &["card {n} ana={s}", "days 1", "dispute {r} release"],
    &["pix {a}", "dispute {r} accept"],
    &["card {n}", "dispute {r} accept 70"],
    &["card {n} ana={s}", "anticipate ana 2"],
    &["card {n} bia={t}", "days 3", "anticipate bia 15"],
    &["pix {a}", "cashout 700 ana@example.com"],
    &["pix {a}", "cashout 800 return@example.com", "days 1"],
    &["pix {a} ana={s}", "withdraw ana approve"],
    &["pix {a} bia={s}", "withdraw bia reject"],
    &["commission true", "card {n} ana={s}", "refund {r}", "commission false"],
    &["late {a}"],
    &["unpaid {a} ana={s}"],
    &["days 1"],
    &["days 9"],
    &["days 31"],
];

/// Plays random months for a new merchant, and gives it. The same seed is the same months.
pub(crate) async fn play_random(world: &World, seed: u64) -> Merchant<'_> {
    play_random_told(world, seed).await.0
}

/// The same with the story of what was asked for.
pub(crate) async fn play_random_told(world: &World, seed: u64) -> (Merchant<'_>, Vec<Value>) {
    let mut state = seed;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut lines = Vec::new();
    for place in 0..34 {
        let part = PARTS[if place < 4 { place } else { below(PARTS.len() as u64) as usize }];
        let amount = 5_000 + below(20_000);
        let values = [
            ("{a}", format!("{}.{:02}", amount / 100, amount % 100)),
            ("{n}", amount.to_string()),
            ("{s}", (100 + below(900)).to_string()),
            ("{t}", (100 + below(900)).to_string()),
            ("{r}", (100 + below(2_000)).to_string()),
        ];
        let filled = |line: &&str| values.iter().fold((*line).to_owned(), |line, (name, by)| line.replace(name, by));
        lines.extend(part.iter().map(filled));
    }
    play_story(world, lines.into_iter()).await
}

async fn play_lines(world: &World, lines: impl Iterator<Item = String>) -> Merchant<'_> {
    play_story(world, lines).await.0
}

async fn play_story(world: &World, lines: impl Iterator<Item = String>) -> (Merchant<'_>, Vec<Value>) {
    let merchant = json!({"name": HOSTILE[0], "document": cnpj(1), "split_enabled": true, "cashout_enabled": true});
    let merchant = world.open(merchant).await;
    let recipients = vec![merchant.recipient(HOSTILE[1], 1).await, merchant.recipient(HOSTILE[2], 2).await];
    let (charge, returns_commission, story) = (String::new(), false, Vec::new());
    let mut shop = Shop { merchant, recipients, charge, returns_commission, story };
    for line in lines {
        shop.step(&line).await;
    }
    (shop.merchant, shop.story)
}

impl Shop<'_> {
    async fn step(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (plain, splits): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| !word.contains('='));
        let splits: Vec<(&str, i64)> = splits.iter().map(|split| self.split(split)).collect();
        let with_them = |body: Value| if splits.is_empty() { body } else { with_splits(body, &splits) };
        let of_card = |amount: &str, number| with_them(card(amount.parse().unwrap(), number));
        let of_pix = |amount| with_them(with(&pix(amount), "/descricao", json!(HOSTILE[2])));
        let (merchant, world) = (&self.merchant, self.merchant.world);
        let parts: Map<String, Value> = splits.iter().map(|(id, amount)| ((*id).to_owned(), json!(amount))).collect();
        let mut entry = None;
        match plain[..] {
            ["pix", amount] => {
                self.charge = text(&merchant.paid_pix(&of_pix(amount)).await["txid"]);
                let amount: i64 = amount.replace('.', "").parse().unwrap();
                entry = Some(json!({"what": "paid", "amount": amount, "splits": parts}));
            }
            ["card", amount] => {
                let captured = merchant.post("/api/card", &of_card(amount, APPROVED)).await.expect(201);
                self.charge = text(&captured["txid"]);
                entry = Some(captured_of(amount, 1, false, parts));
            }
            ["installments", count, amount] => {
                let count: u8 = count.parse().unwrap();
                let body = with(&of_card(amount, APPROVED), "/installments", json!(count));
                self.charge = text(&merchant.post("/api/card", &body).await.expect(201)["txid"]);
                entry = Some(captured_of(amount, count, false, parts));
            }
            ["debit", amount] => {
                let body = with(&of_card(amount, APPROVED), "/payment_type", json!("debit"));
                self.charge = text(&merchant.post("/api/card", &body).await.expect(201)["txid"]);
                entry = Some(captured_of(amount, 1, true, parts));
            }
            ["refused", amount] => drop(merchant.post("/api/card", &of_card(amount, REFUSED)).await.expect(402)),
            ["silent", amount] => drop(merchant.post("/api/card", &of_card(amount, SILENT)).await.expect(201)),
            ["unpaid", amount] => drop(merchant.post("/api/pix", &of_pix(amount)).await.expect(201)),
            ["cancelled", amount] => drop(cancelled(merchant, &of_pix(amount)).await),
            ["late", amount] => {
                let txid = cancelled(merchant, &of_pix(amount)).await;
                merchant.pay(&txid).await.refused(409, "charge_not_pending");
            }
            ["subscription", amount, fee] => self.subscribe(with_them(json!({})), amount, fee).await,
            ["anticipate", name, days] => {
                let path = format!("/api/dashboard/sub-recipients/{}/anticipate", self.recipient(name));
                let newest = items(&merchant.get(&path).await.expect(200))[0]["id"].clone();
                let days: u8 = days.parse().unwrap();
                let body = json!({"split_ids": [newest], "target_days": days});
                let done = merchant.post(&path, &body).await.expect(200);
                let (recipient, amount) = (self.recipient(name), &done["original_cents"]);
                entry = Some(json!({"what": "anticipated", "recipient": recipient, "amount": amount, "days": days}));
            }
            ["withdraw", name, decision] => {
                let withdrawal = merchant.withdraw(self.recipient(name)).await.expect(201);
                self.decide("withdrawals", &text(&withdrawal["withdrawal_id"]), decision).await;
                let (recipient, amount) = (self.recipient(name), &withdrawal["amount_cents"]);
                let paid = json!({"what": "withdrawn", "recipient": recipient, "amount": amount});
                entry = Some(paid).filter(|_| decision == "approve");
            }
            ["cashout", amount, key] => {
                let amount: i64 = amount.parse().unwrap();
                let body = json!({"amount": amount, "pix_key": key, "pix_key_type": "email", "info": HOSTILE[0]});
                merchant.post("/api/cashout", &body).await.expect(201);
                let stays_away = !["fail", "return"].iter().any(|begin| key.starts_with(begin));
                entry = Some(json!({"what": "cashout", "amount": amount})).filter(|_| stays_away);
            }
            ["refund" | "unrefunded", amount] => {
                let amount: i64 = amount.parse().unwrap();
                let body = json!({"payment_id": self.charge, "amount": amount, "reason": HOSTILE[1]});
                let id = text(&merchant.post("/api/refunds", &with_them(body)).await.expect(201)["id"]);
                self.decide("refunds", &id, if plain[0] == "refund" { "approve" } else { "reject" }).await;
                let refunded = json!({"what": "refunded", "id": id, "amount": amount, "take_backs": parts,
                    "returns_commission": self.returns_commission});
                // The sandbox's acquirer refuses this amount.
                entry = Some(refunded).filter(|_| plain[0] == "refund" && amount != 1_357);
            }
            ["commission", returned] => {
                let options = json!({"options": {"refund_commission": returned == "true"}});
                world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &options).await.expect(200);
                self.returns_commission = returned == "true";
            }
            ["dispute", amount, decision, ref part @ ..] => {
                let mut amount: i64 = amount.parse().unwrap();
                let charge = merchant.get(&format!("/api/charges/{}", self.charge)).await.expect(200);
                let kind = if charge["payment_method"] == "pix" { "med" } else { "chargeback" };
                let body = json!({"amount": amount, "kind": kind, "reason": HOSTILE[0]});
                let path = format!("/ops/charges/{}/disputes", self.charge);
                let id = text(&world.ops_post(&path, &body).await.expect(201)["id"]);
                if decision == "reversed" {
                    self.decide("disputes", &id, "accept").await;
                    let body = json!({"reason": HOSTILE[0], "reference": HOSTILE[1]});
                    let path = format!("/ops/disputes/{id}/reverse");
                    let entry = text(&world.second_ops_post(&path, &[], &body).await.expect(201)["id"]);
                    self.decide("entries", &entry, "approve").await;
                } else if let [part] = part {
                    amount = part.parse().unwrap();
                    world.ops_post(&format!("/ops/disputes/{id}/accept"), &json!({"amount": amount})).await.expect(200);
                } else {
                    self.decide("disputes", &id, decision).await;
                }
                let disputed = json!({"what": "disputed", "id": id, "amount": amount});
                entry = Some(disputed).filter(|_| decision == "accept");
            }
            ["house", debit, credit, amount] => {
                let body = json!({"debit": debit, "credit": credit, "amount": amount.parse::<i64>().unwrap(),
                    "reason": HOSTILE[0], "reference": HOSTILE[1], "reference_repeats": true});
                let id = text(&world.second_ops_post("/ops/entries", &[], &body).await.expect(201)["id"]);
                self.decide("entries", &id, "approve").await;
            }
            ["paid-twice"] => self.pay_twice(),
            ["written-off", name, amount] => {
                let (debit, credit) = match name {
                    // What is given is the same loss of the platform as what is not paid back.
                    "goodwill" => {
                        ("Expenses:Losses:Other", format!("Liabilities:Merchants:M-{}:Available", merchant.id))
                    }
                    "goodwill-ana" => (
                        "Expenses:Losses:Other",
                        format!("Liabilities:Recipients:R-{}:Available", self.recipient("ana")),
                    ),
                    "merchant" => ("Expenses:Losses:Other", format!("Assets:Merchants:M-{}:Deficit", merchant.id)),
                    name => {
                        let claim = format!("Assets:Receivable:Recipients:R-{}", self.recipient(name));
                        ("Expenses:Losses:Clawback", claim)
                    }
                };
                let body = json!({"debit": debit, "credit": credit, "amount": amount.parse::<i64>().unwrap(),
                    "reason": HOSTILE[0], "reference": HOSTILE[1], "reference_repeats": true});
                let id = text(&world.second_ops_post("/ops/entries", &[], &body).await.expect(201)["id"]);
                self.decide("entries", &id, "approve").await;
            }
            ["returned", _] => {
                let body = with(&individual(HOSTILE[2], &cpf(3)), "/bank_account/conta", json!("99991"));
                let id = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
                self.decide("sub-recipients", &id, "approve").await;
                self.recipients.push(id);
            }
            ["until", weekday] => {
                for _ in 0..7 {
                    if day_of(world.engine().now().0).format("%a").to_string() == weekday {
                        break;
                    }
                    world.advance(DAY).await;
                }
            }
            ["days", days] => drop(world.advance(days.parse::<i64>().unwrap() * DAY).await),
            _ => panic!("{line}: there is no such step"),
        }
        if let Some(mut entry) = entry {
            let (merchant, day) = (&self.merchant.id, day_of(world.engine().now().0).to_string());
            entry.as_object_mut().unwrap().extend([
                ("merchant".to_owned(), json!(merchant)),
                ("txid".to_owned(), json!(self.charge)),
                ("day".to_owned(), json!(day)),
            ]);
            self.story.push(entry);
        }
    }

    /// The acquirer has the last charge, a debit of another day, on record today once more.
    fn pay_twice(&self) {
        let world = self.merchant.world;
        let folder = world.folder().join("sandbox/acquirer");
        let captures = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let captures = captures.filter(|path| path.to_string_lossy().contains("captures-"));
        let lines: Vec<_> = captures.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let txid = |line: &str| line.split(' ').next().unwrap().replace('-', "");
        let line = lines.iter().flat_map(|text| text.lines()).find(|line| txid(line) == self.charge).unwrap();
        let today = folder.join(format!("captures-{}", day_of(world.engine().now().0)));
        let mut file = OpenOptions::new().create(true).append(true).open(today).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn recipient(&self, name: &str) -> &str {
        let place = ["ana", "bia", "caio"].iter().position(|known| *known == name);
        &self.recipients[place.unwrap_or_else(|| panic!("{name} is nobody"))]
    }

    /// The recipient and the amount of a word such as `ana=1000`.
    fn split(&self, split: &str) -> (&str, i64) {
        let (name, amount) = split.split_once('=').unwrap();
        (self.recipient(name), amount.parse().unwrap())
    }

    /// Three daily cycles after a grace of one; the first carries a fee.
    async fn subscribe(&self, splits: Value, amount: &str, fee: &str) {
        let [amount, fee]: [i64; 2] = [amount, fee].map(|amount| amount.parse().unwrap());
        let fee = json!({"description": HOSTILE[1], "amount": fee, "cycles": 1});
        let plan = json!({"tag": HOSTILE[2], "amount": amount, "billingCycle": "DAILY", "totalBillingCycles": 3,
            "initialGraceCycles": 1, "initialFee": fee});
        let plan = self.merchant.post("/api/recurrency/plans", &plan).await.expect(201);
        let stored = self.merchant.post("/api/cards", &without(&card(1, APPROVED), "/amount")).await.expect(201);
        let mut body = json!({"plan_id": plan["id"], "customer": card(1, APPROVED)["customer"],
            "payment_method": "credit_card", "card_token": stored["card_token"]});
        body.as_object_mut().unwrap().extend(splits.as_object().unwrap().clone());
        self.merchant.post("/api/recurrency/subscriptions", &body).await.expect(201);
    }

    /// An operator decides; one who waits does not.
    async fn decide(&self, of: &str, id: &str, decision: &str) {
        let body = if decision == "reject" { json!({"notes": HOSTILE[0]}) } else { json!({}) };
        if decision != "wait" {
            let path = format!("/ops/{of}/{id}/{decision}");
            self.merchant.world.ops_send(Method::POST, &path, &[], body.to_string()).await.expect(200);
        }
    }
}

/// Captured charge of a story.
fn captured_of(amount: &str, installments: u8, is_debit: bool, splits: Map<String, Value>) -> Value {
    let amount: i64 = amount.parse().unwrap();
    json!({"what": "captured", "amount": amount, "installments": installments, "is_debit": is_debit, "splits": splits})
}

/// A code that was created and cancelled.
async fn cancelled(merchant: &Merchant<'_>, body: &Value) -> String {
    let txid = text(&merchant.post("/api/pix", body).await.expect(201)["txid"]);
    merchant.post(&format!("/api/charges/{txid}/cancel"), &json!({})).await.expect(200);
    txid
}
