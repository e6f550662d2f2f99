//! Mixed commands of all kinds, with moves of the clock and restarts in between, held against a
//! plain model after every step: balances, statuses and every split's amount agree. A run that
//! fails names its seed; `CENTAVO_MODEL_SEED` runs that one alone, and `CENTAVO_MODEL_RUNS` says
//! how many runs there are.

mod plain;

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::console_books::{DecisionPreview, books_are_as_shown};
use crate::world::*;
use plain::{Bank, CASHOUT_FEE, DAY, Part, Plain, Status, Will};

const STEPS: usize = 60;
const RUNS: u64 = 6;
const RECIPIENTS: u32 = 3;

/// Pseudo-random numbers (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn amount(&mut self, least: i64, most: i64) -> i64 {
        least + i64::try_from(self.below(usize::try_from(most - least + 1).unwrap())).unwrap()
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick(&mut self, from: &[usize]) -> Option<usize> {
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }
}

/// A server, its one merchant, and the model of both.
struct Run {
    world: Option<World>,
    key: String,
    /// The merchant's id.
    merchant: String,
    plain: Plain,
    chance: Chance,
    /// What was done, for the story of a failure.
    story: Vec<String>,
}

impl Run {
    async fn begin(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let world = World::sandbox().await;
        let refund_commission = chance.percent(50);
        let settlement_days = [30, 30, 0, 2][chance.below(4)];
        let options = json!({"refund_commission": refund_commission, "card_settlement_days": settlement_days});
        let body = json!({"name": "Loja", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true,
            "options": options});
        let (key, id, recipients) = {
            let merchant = world.open(body).await;
            let mut recipients = Vec::new();
            for number in 1..=RECIPIENTS {
                let banks =
                    [(Bank::Keeps, "56789"), (Bank::Keeps, "1"), (Bank::Refuses, "99990"), (Bank::Returns, "99991")];
                let (bank, conta) = banks[chance.below(banks.len())];
                let body = individual(&format!("Recebedor {number}"), &cpf(number));
                let body = with(&body, "/bank_account/conta", json!(conta));
                let id = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
                world.ops_post(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await.expect(200);
                recipients.push(plain::Recipient::of(id, bank));
            }
            (merchant.key.clone(), merchant.id.clone(), recipients)
        };
        let now = world.advance(0).await.timestamp_millis();
        let plain = Plain { now, refund_commission, settlement_days, recipients, ..Plain::default() };
        Self { world: Some(world), key, merchant: id, plain, chance, story: Vec::new() }
    }

    fn world(&self) -> &World {
        self.world.as_ref().expect("the server runs")
    }

    async fn get(&self, path: &str) -> Value {
        self.world().send(Method::GET, path, &[("token", &self.key)], "").await.expect(200)
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = [("token", self.key.as_str()), ("content-type", "application/json")];
        self.world().send(Method::POST, path, &headers, body.to_string()).await
    }

    async fn ops(&self, path: &str, body: Value) -> Answer {
        self.world().ops_post(path, &body).await
    }

    fn log(&mut self, what: String) {
        self.story.push(what);
    }

    /// Everything that follows by itself has happened, in the service and in the model.
    async fn settle(&mut self, seconds: i64) {
        let now = self.world().advance(seconds).await.timestamp_millis();
        self.plain.advance(now);
    }

    async fn step(&mut self) {
        match self.chance.below(107) {
            0..18 => self.card().await,
            18..36 => self.pix().await,
            36..42 => self.withdraw().await,
            42..49 => self.decide_withdrawal().await,
            49..57 => self.anticipate().await,
            57..65 => self.cash_out().await,
            65..74 => self.request_refund().await,
            74..82 => self.decide_refund().await,
            82..86 => self.open_dispute().await,
            86..89 => self.decide_dispute().await,
            89..97 => self.wait().await,
            97..100 => self.restart().await,
            100..102 => self.reverse_dispute().await,
            102..105 => self.give().await,
            _ => self.freeze().await,
        }
        self.settle(0).await;
    }

    fn splits(&mut self, amount: i64) -> Vec<(usize, i64)> {
        let count = [0, 1, 1, 2, 3][self.chance.below(5)];
        let mut rest = amount - 1;
        let mut splits = Vec::new();
        for _ in 0..count {
            if rest > 0 {
                let most = if self.chance.percent(15) { rest } else { (rest / 3).max(1) };
                let part = self.chance.amount(1, most);
                rest -= part;
                splits.push((self.chance.below(RECIPIENTS as usize), part));
            }
        }
        splits
    }

    fn wire(&self, splits: &[(usize, i64)]) -> Value {
        let of = |(recipient, amount): &(usize, i64)| json!({"sub_recipient_id": self.plain.recipients[*recipient].id, "amount": amount});
        splits.iter().map(of).collect()
    }

    async fn card(&mut self) {
        let amount = self.chance.amount(300, 30_000);
        let splits = self.splits(amount);
        let installments = self.chance.amount(1, 12);
        let refused = self.chance.percent(10);
        self.log(format!("card {amount} {installments}x {splits:?} refused {refused}"));
        let mut body =
            with(&card(amount, if refused { REFUSED } else { APPROVED }), "/installments", json!(installments));
        body["splits"] = self.wire(&splits);
        let answer = self.post("/api/card", body).await;
        let answer = answer.expect(if refused { 402 } else { 201 });
        let txid = text(&answer["txid"]);
        self.plain.open(txid.clone(), true, amount, installments, &splits);
        let place = self.plain.charges.len() - 1;
        if refused {
            self.plain.charges[place].status = Status::Refused;
            return;
        }
        let paid_at = time(&self.get(&format!("/api/charges/{txid}")).await["paid_at"]).timestamp_millis();
        self.plain.now = self.plain.now.max(paid_at);
        self.plain.pay(place, paid_at);
        if !splits.is_empty() {
            let charge = &self.plain.charges[place];
            let fees: i64 = charge.commission.iter().sum();
            let gross = amount - splits.iter().map(|(_, part)| part).sum::<i64>();
            assert_eq!(answer["breakdown"]["sellerAmount"], gross - fees, "{:#?}", self.story);
        }
    }

    async fn pix(&mut self) {
        let waiting = self.places_of_charges(|charge| charge.status == Status::Waiting);
        if let Some(place) = self.chance.pick(&waiting).filter(|_| self.chance.percent(60)) {
            let txid = self.plain.charges[place].txid.clone();
            if self.chance.percent(80) {
                self.log(format!("pay {place}"));
                let paid = self.post(&format!("/api/sandbox/pix/{txid}/pay"), json!({})).await.expect(200);
                let paid_at = time(&paid["paid_at"]).timestamp_millis();
                self.plain.now = self.plain.now.max(paid_at);
                self.plain.pay(place, paid_at);
            } else {
                self.log(format!("cancel {place}"));
                self.post(&format!("/api/charges/{txid}/cancel"), json!({})).await.expect(200);
                self.plain.cancel(place);
            }
            return;
        }
        let amount = self.chance.amount(2, 30_000);
        let splits = self.splits(amount);
        self.log(format!("pix {amount} {splits:?}"));
        let mut body = pix(&format!("{}.{:02}", amount / 100, amount % 100));
        body["splits"] = self.wire(&splits);
        let answer = self.post("/api/pix", body).await.expect(201);
        self.plain.open(text(&answer["txid"]), false, amount, 1, &splits);
        let charge = self.plain.charges.last_mut().expect("it was opened");
        charge.expires_at = time(&answer["expires_at"]).timestamp_millis();
    }

    fn places_of_charges(&self, wanted: impl Fn(&plain::Charge) -> bool) -> Vec<usize> {
        (0..self.plain.charges.len()).filter(|place| wanted(&self.plain.charges[*place])).collect()
    }

    async fn withdraw(&mut self) {
        let recipient = self.chance.below(RECIPIENTS as usize);
        let by_operator = self.chance.percent(30);
        self.log(format!("withdraw {recipient} by an operator {by_operator}"));
        let owner = &self.plain.recipients[recipient];
        let (available, id) = (owner.balance()[0], owner.id.clone());
        let is_pending = owner.withdrawals.iter().any(|withdrawal| withdrawal.status == "pending");
        let is_frozen = owner.frozen;
        let answer = match by_operator {
            true => {
                let path = format!("/ops/sub-recipients/{id}/withdraw");
                self.world().second_ops_post(&path, &[], &json!({"reason": "Saldo parado"})).await
            }
            false => self.post(&format!("/api/dashboard/sub-recipients/{id}/withdraw"), json!({})).await,
        };
        let expected = if is_frozen {
            403
        } else if is_pending {
            409
        } else if available == 0 {
            422
        } else {
            201
        };
        let answer = answer.expect(expected);
        if expected == 201 {
            let id = text(&answer[if by_operator { "id" } else { "withdrawal_id" }]);
            let amount = self.plain.withdraw(recipient, id);
            assert_eq!(answer["amount_cents"], amount, "{:#?}", self.story);
        }
    }

    async fn decide_withdrawal(&mut self) {
        let recipient = self.chance.below(RECIPIENTS as usize);
        let withdrawals = &self.plain.recipients[recipient].withdrawals;
        if withdrawals.is_empty() {
            return;
        }
        let place = withdrawals.len() - 1 - self.chance.below(withdrawals.len().min(2));
        let approve = self.chance.percent(60);
        let withdrawal = self.plain.recipients[recipient].withdrawals[place].clone();
        let expected = if withdrawal.status == "pending" { 200 } else { 409 };
        let is_frozen = self.plain.recipients[recipient].frozen && expected == 200;
        if self.chance.percent(15) {
            self.log(format!("withdrawal {recipient}/{place} cancel"));
            let path = format!("/api/dashboard/withdraw/{}/cancel", withdrawal.id);
            self.post(&path, json!({})).await.expect(expected);
            if expected == 200 {
                self.plain.reject_withdrawal(recipient, place);
            }
            return;
        }
        self.log(format!("withdrawal {recipient}/{place} approve {approve}"));
        let verb = if approve { "approve" } else { "reject" };
        let path = format!("/ops/withdrawals/{}/{verb}", withdrawal.id);
        if approve && is_frozen {
            self.ops(&path, json!({})).await.refused(403, "recipient_frozen");
            return;
        }
        let foreseen = self.foresee(expected == 200, &withdrawal.id, verb).await;
        let answer = self.ops(&path, if approve { json!({}) } else { json!({"notes": "Conta divergente"}) }).await;
        let answer = answer.expect(expected);
        if expected == 200 {
            let is_paid = approve && self.plain.recipients[recipient].bank != Bank::Refuses;
            assert_eq!(answer["status"], if is_paid { "approved" } else { "rejected" }, "{:#?}", self.story);
            self.came_true(foreseen, if approve && !is_paid { 1 } else { 2 }).await;
            if is_paid {
                self.plain.pay_withdrawal(recipient, place, time(&answer["approved_at"]).timestamp_millis());
            } else {
                self.plain.reject_withdrawal(recipient, place);
            }
        }
    }

    async fn anticipate(&mut self) {
        let recipient = self.chance.below(RECIPIENTS as usize);
        let (days, rate) = [(2, 238), (7, 200), (15, 150)][self.chance.below(3)];
        let owner = self.plain.recipients[recipient].clone();
        if owner.frozen {
            return;
        }
        let open: Vec<usize> = (0..owner.splits.len())
            .filter(|place| owner.splits[*place].part == Part::Pending && owner.splits[*place].left > 0)
            .collect();
        let mut chosen: Vec<usize> = open.into_iter().filter(|_| self.chance.percent(50)).collect();
        let others: Vec<usize> = (0..owner.splits.len())
            .filter(|place| !matches!(owner.splits[*place].part, Part::Pending | Part::Gone | Part::Announced))
            .collect();
        let spoiled = self.chance.pick(&others).filter(|_| self.chance.percent(15));
        chosen.extend(spoiled);
        self.log(format!("anticipate {recipient} {chosen:?} d{days} spoiled {spoiled:?}"));
        let name = |place: &usize| {
            let split = &owner.splits[*place];
            format!("{}-{}", self.plain.charges[split.charge].txid, split.index)
        };
        let ids: Vec<String> = chosen.iter().map(name).collect();
        let body = json!({"split_ids": ids, "target_days": days});
        let path = format!("/api/dashboard/sub-recipients/{}/anticipate", owner.id);
        let simulated = self.post(&format!("{path}/simulate"), body.clone()).await;
        let answer = self.post(&path, body).await;
        let expected = if chosen.is_empty() {
            400
        } else if spoiled.is_some() || chosen.iter().any(|place| self.plain.is_due_before(&owner.splits[*place], days))
        {
            409
        } else {
            200
        };
        let (simulated, answer) = (simulated.expect(expected), answer.expect(expected));
        if expected == 200 {
            let [original, fee, net] = self.plain.anticipate(recipient, &chosen, rate);
            for answer in [simulated, answer] {
                let said = ["anticipated_count", "original_cents", "fee_cents", "net_cents", "target_days"];
                let said = said.map(|name| answer[name].as_i64().unwrap());
                let count = i64::try_from(chosen.len()).unwrap();
                assert_eq!(said, [count, original, fee, net, days], "{:#?}", self.story);
            }
        }
    }

    async fn cash_out(&mut self) {
        let (will, key) = [
            (Will::Process, "ok@example.com"),
            (Will::Process, "also-ok@example.com"),
            (Will::Fail, "fail@example.com"),
            (Will::AnswerLate, "timeout@example.com"),
            (Will::BeRefused, "down@example.com"),
        ][self.chance.below(5)];
        let most = (self.plain.available + 2_000).min(20_000);
        let amount = self.chance.amount(50, most);
        self.log(format!("cash out {amount} {will:?}"));
        let body = json!({"amount": amount, "pix_key": key, "pix_key_type": "email"});
        let answer = self.post("/api/cashout", body).await;
        if amount <= CASHOUT_FEE || amount > self.plain.available {
            answer.expect(400);
            return;
        }
        let answer = answer.expect(if will == Will::BeRefused { 502 } else { 201 });
        let id = text(&answer["id"]);
        let record = self.get(&format!("/api/cashout/{id}")).await;
        assert_eq!(record["amount"], amount - CASHOUT_FEE, "{:#?}", self.story);
        let created_at = text(&record["date_created"]);
        let created_at = chrono::DateTime::parse_from_rfc3339(&created_at).unwrap().timestamp_millis();
        self.plain.cash_out(id, amount, will, created_at);
    }

    async fn request_refund(&mut self) {
        if self.plain.charges.is_empty() {
            return;
        }
        let paid = self.places_of_charges(|charge| charge.status == Status::Paid);
        let any = self.chance.below(self.plain.charges.len());
        let place = self.chance.pick(&paid).filter(|_| self.chance.percent(90)).unwrap_or(any);
        let charge = self.plain.charges[place].clone();
        let free = charge.amount - charge.refunded - charge.requested - charge.disputed - charge.lost;
        let amount = if self.chance.percent(80) && free > 0 {
            self.chance.amount(1, free)
        } else {
            self.chance.amount(1, charge.amount + 10)
        };
        let is_eligible = charge.status == Status::Paid
            && charge.refunded < charge.amount
            && self.plain.now < self.plain.window_ends(place);
        let mut take_back = Vec::new();
        if is_eligible && amount <= free && self.chance.percent(50) {
            let mut rest = amount;
            for recipient in 0..RECIPIENTS as usize {
                let most = rest.min(self.plain.returnable(place, recipient));
                if most > 0 && self.chance.percent(70) {
                    let part = self.chance.amount(1, most);
                    take_back.push((recipient, part));
                    rest -= part;
                }
            }
        }
        self.log(format!("refund of {place}: {amount}, take back {take_back:?}"));
        let mut body = json!({"payment_id": charge.txid, "amount": amount, "reason": "Devolução"});
        if !take_back.is_empty() {
            body["splits"] = self.wire(&take_back);
        }
        let answer = self.post("/api/refunds", body).await;
        if !is_eligible {
            answer.expect(422);
        } else if amount > free {
            // A part that is disputed is not eligible; what was never there is too much.
            assert!([409, 422].contains(&answer.status), "{} {:#?}", answer.text, self.story);
            if charge.disputed + charge.lost == 0 {
                answer.expect(409);
            }
        } else {
            let answer = answer.expect(201);
            self.plain.request_refund(text(&answer["id"]), place, amount, &take_back);
        }
    }

    async fn decide_refund(&mut self) {
        if self.plain.refunds.is_empty() {
            return;
        }
        let pending: Vec<usize> =
            (0..self.plain.refunds.len()).filter(|place| self.plain.refunds[*place].status == "pending").collect();
        let any = self.chance.below(self.plain.refunds.len());
        let place = self.chance.pick(&pending).filter(|_| self.chance.percent(90)).unwrap_or(any);
        let approve = self.chance.percent(75);
        self.log(format!("refund {place} approve {approve}"));
        let refund = &self.plain.refunds[place];
        let is_late = approve && self.plain.now >= self.plain.window_ends(refund.charge);
        let expected = match refund.status {
            "pending" if is_late => 422,
            "pending" => 200,
            _ => 409,
        };
        let verb = if approve { "approve" } else { "reject" };
        let path = format!("/ops/refunds/{}/{verb}", refund.id);
        let foreseen = self.foresee(expected == 200, &refund.id, verb).await;
        let body = if approve { json!({}) } else { json!({"notes": "Fora da política"}) };
        self.ops(&path, body).await.expect(expected);
        self.came_true(foreseen, 1).await;
        if expected == 200 && approve {
            self.plain.approve_refund(place);
        } else if expected == 200 {
            self.plain.reject_refund(place);
        }
    }

    async fn open_dispute(&mut self) {
        let paid = self.places_of_charges(|charge| charge.status == Status::Paid);
        let Some(place) = self.chance.pick(&paid) else { return };
        let charge = &self.plain.charges[place];
        let free = charge.amount - charge.refunded - charge.requested - charge.disputed - charge.lost;
        if free == 0 {
            return;
        }
        let amount = self.chance.amount(1, free);
        let kind = if charge.is_card { "chargeback" } else { "med" };
        let txid = charge.txid.clone();
        self.log(format!("dispute of {place}: {amount}"));
        let body = json!({"amount": amount, "kind": kind, "reason": "Não reconhecida"});
        let foreseen = DecisionPreview::of_dispute(self.world(), &txid, amount, kind).await;
        let answer = self.ops(&format!("/ops/charges/{txid}/disputes"), body).await;
        if self.plain.now >= self.plain.dispute_window_ends(place) {
            assert_eq!(foreseen.err(), Some(422), "{:#?}", self.story);
            answer.expect(422);
            return;
        }
        self.came_true(foreseen.ok(), 1).await;
        let answer = answer.expect(201);
        self.plain.open_dispute(text(&answer["id"]), place, amount);
    }

    async fn decide_dispute(&mut self) {
        let open: Vec<usize> =
            (0..self.plain.disputes.len()).filter(|place| self.plain.disputes[*place].status == "open").collect();
        let Some(place) = self.chance.pick(&open) else { return };
        let accept = self.chance.percent(50);
        self.log(format!("dispute {place} accept {accept}"));
        let verb = if accept { "accept" } else { "release" };
        let id = self.plain.disputes[place].id.clone();
        let foreseen = self.foresee(true, &id, if accept { "approve" } else { "reject" }).await;
        self.ops(&format!("/ops/disputes/{id}/{verb}"), json!({})).await.expect(200);
        self.came_true(foreseen, 1).await;
        self.plain.decide_dispute(place, accept);
    }

    async fn reverse_dispute(&mut self) {
        let lost: Vec<usize> =
            (0..self.plain.disputes.len()).filter(|place| self.plain.disputes[*place].status == "accepted").collect();
        let Some(place) = self.chance.pick(&lost) else { return };
        self.log(format!("dispute {place} reversed"));
        let path = format!("/ops/disputes/{}/reverse", self.plain.disputes[place].id);
        self.book_entry(&path, json!({"reason": "Ganha depois"})).await;
        self.plain.reverse_dispute(place);
    }

    /// Goodwill to the merchant or to a recipient.
    async fn give(&mut self) {
        let to = Some(self.chance.below(RECIPIENTS as usize)).filter(|_| self.chance.percent(60));
        let amount = self.chance.amount(1, 3_000);
        self.log(format!("goodwill {amount} to {to:?}"));
        let credited = match to {
            Some(recipient) => format!("Recipients:R-{}", self.plain.recipients[recipient].id),
            None => format!("Merchants:M-{}", self.merchant),
        };
        let body = json!({"debit": "Expenses:Losses:Other", "credit": format!("Liabilities:{credited}:Available"),
            "amount": amount, "reason": "Indisponibilidade", "reference": "CHAMADO-1", "reference_repeats": true});
        self.book_entry("/ops/entries", body).await;
        self.plain.give(to, amount);
    }

    /// The second operator asks for an entry, the first one approves it.
    async fn book_entry(&self, path: &str, body: Value) {
        let id = text(&self.world().second_ops_post(path, &[], &body).await.expect(201)["id"]);
        let foreseen = self.foresee(true, &id, "approve").await;
        self.ops(&format!("/ops/entries/{id}/approve"), json!({})).await.expect(200);
        self.came_true(foreseen, 1).await;
    }

    async fn freeze(&mut self) {
        let recipient = self.chance.below(RECIPIENTS as usize);
        let owner = &mut self.plain.recipients[recipient];
        owner.frozen = !owner.frozen;
        let (verb, id) = (if owner.frozen { "freeze" } else { "unfreeze" }, owner.id.clone());
        self.log(format!("{verb} {recipient}"));
        let path = format!("/ops/sub-recipients/{id}/{verb}");
        self.ops(&path, json!({"reason": "Fraude"})).await.expect(200);
    }

    /// What the console says that a decision will book, where it waits for one.
    async fn foresee(&self, waits: bool, id: &str, decision: &str) -> Option<DecisionPreview> {
        if waits { Some(DecisionPreview::of(self.world(), id, decision).await) } else { None }
    }

    async fn came_true(&self, foreseen: Option<DecisionPreview>, steps: usize) {
        if let Some(foreseen) = foreseen {
            foreseen.is_booked(self.world(), steps).await;
        }
    }

    async fn wait(&mut self) {
        let day = DAY / 1_000;
        let seconds = [90, 3_600, day, 3 * day, 31 * day, 100 * day][self.chance.below(6)];
        self.log(format!("wait {seconds} s"));
        self.settle(seconds).await;
    }

    async fn restart(&mut self) {
        self.log("restart".to_owned());
        let world = self.world.take().expect("the server runs");
        self.world = Some(world.restarted().await);
    }

    /// Balances, statuses and amounts: the service says what the model says.
    async fn compare(&self) {
        let story = || format!("{:#?}", self.story);
        let balance = self.get("/api/balance").await;
        let found = ["available", "pending", "reserved", "deficit"].map(|name| balance[name].as_i64().unwrap());
        assert_eq!(found, self.plain.balance(), "available, pending, reserved, deficit {}", story());
        for recipient in &self.plain.recipients {
            self.compare_recipient(recipient, &story).await;
        }
        let charges = self.all("/api/charges").await;
        let found: BTreeMap<_, _> = charges
            .iter()
            .map(|charge| {
                (text(&charge["txid"]), (text(&charge["status"]), charge["refunded_amount"].as_i64().unwrap()))
            })
            .collect();
        let expected = self.plain.charges.iter().map(|charge| {
            let status = match charge.status {
                Status::Waiting => "pending",
                Status::Paid => "CONCLUIDA",
                Status::Refused => "RECUSADA",
                Status::Cancelled => "cancelled",
            };
            (charge.txid.clone(), (status.to_owned(), charge.refunded))
        });
        assert_eq!(found, expected.collect(), "charges {}", story());
        let statuses = |list: &[Value]| -> BTreeMap<String, String> {
            list.iter().map(|item| (text(&item["id"]), text(&item["status"]))).collect()
        };
        let refunds = self.get("/api/refunds").await;
        let expected = self.plain.refunds.iter().map(|refund| (refund.id.clone(), refund.status.to_owned()));
        assert_eq!(statuses(items(&refunds)), expected.collect(), "refunds {}", story());
        let cashouts = self.get("/api/cashout").await;
        let last = self.plain.cashouts.iter().rev().take(50);
        let expected = last.map(|cashout| (cashout.id.clone(), cashout.status.to_owned()));
        assert_eq!(statuses(items(&cashouts)), expected.collect(), "cashouts {}", story());
        let disputes = self.all("/api/disputes").await;
        let expected = self.plain.disputes.iter().map(|dispute| (dispute.id.clone(), dispute.status.to_owned()));
        assert_eq!(statuses(&disputes), expected.collect(), "disputes {}", story());
    }

    async fn compare_recipient(&self, recipient: &plain::Recipient, story: &impl Fn() -> String) {
        let path = format!("/api/dashboard/sub-recipients/{}/splits", recipient.id);
        let first = self.get(&path).await;
        let found = ["available", "pending", "paid", "reserved"].map(|name| first["balance"][name].as_i64().unwrap());
        assert_eq!(found, recipient.balance(), "available, pending, paid, reserved of {} {}", recipient.id, story());
        let found: BTreeMap<_, _> = self
            .all(&path)
            .await
            .iter()
            .map(|split| (text(&split["id"]), (split["amount_cents"].as_i64().unwrap(), text(&split["status"]))))
            .collect();
        let expected: BTreeMap<_, _> = recipient
            .listed()
            .iter()
            .map(|split| {
                let status = match split.part {
                    Part::Announced | Part::Pending => "pending",
                    Part::Available | Part::Pinned(_) => "available",
                    Part::Withdrawn(_) => "paid",
                    Part::Gone => "gone",
                };
                let id = format!("{}-{}", self.plain.charges[split.charge].txid, split.index);
                (id, (split.left, status.to_owned()))
            })
            .collect();
        assert_eq!(found, expected, "splits of {} {}", recipient.id, story());
        let withdrawals = self.get(&format!("/api/dashboard/sub-recipients/{}/withdraw", recipient.id)).await;
        let found: Vec<_> = items(&withdrawals)
            .iter()
            .map(|one| (text(&one["id"]), one["amount_cents"].as_i64().unwrap(), text(&one["status"])))
            .collect();
        let newest_first = recipient.withdrawals.iter().rev();
        let expected: Vec<_> = newest_first.map(|one| (one.id.clone(), one.amount, one.status.to_owned())).collect();
        assert_eq!(found, expected, "withdrawals of {} {}", recipient.id, story());
        let books = self.world().ops_get(&format!("/ops/ledgers/R-{}/accounts", recipient.id)).await.expect(200);
        let owed: i64 = items(&books)
            .iter()
            .filter(|row| text(&row["account"]).starts_with("Liabilities:Clawback"))
            .map(|row| -row["balance"].as_i64().unwrap())
            .sum();
        assert_eq!(owed, recipient.owes(), "what {} owes {}", recipient.id, story());
    }

    /// The items of all pages of a list.
    async fn all(&self, path: &str) -> Vec<Value> {
        let mut gathered = Vec::new();
        for page in 1.. {
            let list = self.get(&format!("{path}?per_page=100&page={page}")).await;
            gathered.extend(items(&list).clone());
            if list["pages"].as_u64().unwrap() <= page {
                break;
            }
        }
        gathered
    }
}

#[tokio::test]
async fn the_service_agrees_with_a_plain_model_after_every_step() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seeds = match number("CENTAVO_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("CENTAVO_MODEL_RUNS").unwrap_or(RUNS) + 1,
    };
    for seed in seeds {
        let mut run = Run::begin(seed).await;
        run.log(format!("CENTAVO_MODEL_SEED={seed}"));
        for _ in 0..STEPS {
            run.step().await;
            run.compare().await;
        }
        run.world().check_books().await;
        books_are_as_shown(run.world.take().expect("the server runs")).await;
    }
}
