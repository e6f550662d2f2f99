//! Rules 2 to 9, 14 and 16: orders, repeats, cuts, refunds, short ids.

use futures_util::future::join;
use hyper::Method;
use serde_json::{Value, json};

use super::super::calls::with_short_id;
use super::super::{cards, payouts, repayments};
use super::wire_calls::ObservedAnswer;
use super::{AMOUNT, Check, Defect, Rule, broken, not_tested};
use crate::shared_settings::Repeats;

/// Lists of objects.
const LISTS: [(&str, &str); 4] =
    [("card", "/cards"), ("pix", "/pix"), ("payout", "/payouts"), ("card", repayments::LIST)];

impl Check<'_> {
    /// Rule 2.
    pub(super) async fn asks_for_the_secret(&self) -> Rule {
        self.unauthorized(Method::GET, "/capabilities", None).await?;
        self.with_each_order(async |list| {
            let path = format!("{list}/{}", self.ids.next());
            self.unauthorized(Method::PUT, &path, Some(&self.body(list))).await?;
            self.unauthorized(Method::GET, &path, None).await?;
            self.get(&path).await?.absent()
        })
        .await
    }

    /// Rule 3.
    pub(super) async fn says_that_it_has_none(&self) -> Rule {
        let mut found = Ok(());
        for (_, list) in LISTS.into_iter().filter(|(kind, _)| self.serves(kind)) {
            found = found.and(self.get(&format!("{list}/{}", self.ids.next())).await.and_then(|seen| seen.none()));
        }
        found
    }

    /// Rule 4.
    pub(super) async fn refuses_what_is_malformed(&self) -> Rule {
        self.with_each_order(async |list| {
            for amount in [json!(10.5), json!("10.00"), json!(0), json!(-AMOUNT), Value::Null] {
                let path = format!("{list}/{}", self.ids.next());
                let mut body = self.body(list);
                body["amount"] = amount.clone();
                let seen = self.put(&path, &body).await?;
                if !(400..500).contains(&seen.status()) {
                    return seen.broken(&format!("400, as amount is {amount}"));
                }
                self.get(&path).await?.absent()?;
            }
            let id = self.ids.next();
            for id in [&id[1..], &format!("{id}0"), &format!("{}-", &id[1..])] {
                let seen = self.put(&format!("{list}/{id}"), &self.body(list)).await?;
                if !(400..500).contains(&seen.status()) {
                    return seen.broken("400, as the id has not 32 hexadecimal digits");
                }
            }
            Ok(())
        })
        .await
    }

    /// Rule 5.
    pub(super) async fn answers_orders(&self) -> Rule {
        self.with_each_order(async |list| self.ordered(list, &self.ids.next()).await.map(drop)).await
    }

    /// Rule 6.
    pub(super) async fn finds_what_it_took(&self) -> Rule {
        self.with_each_order(async |list| {
            let id = self.ids.next();
            let (_, first) = self.ordered(list, &id).await?;
            for _ in 0..2 {
                self.get(&format!("{list}/{id}")).await?.same_as(&first)?;
            }
            Ok(())
        })
        .await
    }

    /// Rule 7.
    pub(super) async fn repeats_as_it_says(&self) -> Rule {
        if self.forgets() {
            return not_tested("repeats is again: Centavo sends no order twice");
        }
        self.with_each_order(async |list| {
            let id = self.ids.next();
            let path = format!("{list}/{id}");
            let (body, first) = self.ordered(list, &id).await?;
            for _ in 0..2 {
                self.is_repeat(&self.put(&path, &body).await?, &first)?;
            }
            self.get(&path).await?.same_as(&first)?;
            // Two at the same moment.
            let path = format!("{list}/{}", self.ids.next());
            let (one, other) = join(self.put(&path, &body), self.put(&path, &body)).await;
            let (one, other) = (one?, other?);
            let (first, second) = if one.status() == 409 { (other, one) } else { (one, other) };
            first.object(list, AMOUNT)?;
            self.is_repeat(&second, &first)?;
            self.get(&path).await?.same_as(&first)
        })
        .await
    }

    /// An answer to a repeat of an order.
    fn is_repeat(&self, seen: &ObservedAnswer, first: &ObservedAnswer) -> Rule {
        match self.capabilities.repeats {
            Repeats::Refused if seen.status() == 409 && seen.code() == Some("already_exists") => Ok(()),
            Repeats::Refused => seen.broken("409 with code already_exists, as repeats is refused"),
            _ if seen.status() == 409 => seen.broken("the answer to the first order, as repeats is same"),
            _ => seen.same_as(first),
        }
    }

    /// Rule 8.
    pub(super) async fn refuses_another_order(&self) -> Rule {
        if self.forgets() {
            return not_tested("repeats is again");
        }
        self.with_each_order(async |list| {
            let id = self.ids.next();
            let path = format!("{list}/{id}");
            let (mut body, first) = self.ordered(list, &id).await?;
            body["amount"] = json!(AMOUNT + 1);
            let seen = self.put(&path, &body).await?;
            if seen.status() != 409 {
                return seen.broken("409, as the id has another order");
            }
            self.get(&path).await?.same_as(&first)
        })
        .await
    }

    /// Rule 9.
    pub(super) async fn survives_a_cut(&self) -> Rule {
        self.with_each_order(async |list| {
            let path = format!("{list}/{}", self.ids.next());
            let body = self.body(list);
            self.put_and_cut(&path, &body).await;
            if self.forgets() {
                return not_tested("repeats is again: an order that broke off is never sent again");
            }
            let again = self.put(&path, &body).await?;
            let found = self.get(&path).await?;
            found.object(list, AMOUNT)?;
            if again.status() == 409 { Ok(()) } else { again.same_as(&found) }
        })
        .await
    }

    /// Rule 16.
    pub(super) async fn keeps_short_ids_apart(&self) -> Rule {
        if self.capabilities.id_length.is_none() || !self.serves("payout") || self.orders.pix_key.is_none() {
            return not_tested("it serves no transfers, its ids are long enough, or there is no PIX key to send to");
        }
        let (id, other) = (self.ids.next(), self.ids.next());
        let path = format!("{}/{id}", payouts::LIST);
        let (body, first) = self.ordered(payouts::LIST, &id).await?;
        let sent = with_short_id(path.clone());
        let seen = self.put(&sent.replace(&id, &other), &body).await?;
        if seen.status() != 409 {
            return seen.broken("409, as the short id has another transfer");
        }
        self.get(&format!("{}/{other}", payouts::LIST)).await?.absent()?;
        self.get(&path).await?.same_as(&first)
    }

    /// Rule 14.
    pub(super) async fn refunds_once(&self) -> Rule {
        if !self.serves("card") {
            return not_tested("only card charges can be refunded without a payer");
        }
        let charge = self.ids.next();
        let (_, seen) = self.ordered(cards::LIST, &charge).await?;
        let Some(payment) = seen.object(cards::LIST, AMOUNT)?.reference else {
            return not_tested("the charge is under way");
        };
        let refund = |amount: i64| json!({ "amount": amount, "kind": "refund", "charge": charge, "payment": payment });
        let path = format!("{}/{}", repayments::LIST, self.ids.next());
        let body = refund(AMOUNT / 4);
        let first = self.put(&path, &body).await?;
        first.object(repayments::LIST, AMOUNT / 4)?;
        self.get(&path).await?.same_as(&first)?;
        if !self.forgets() {
            self.is_repeat(&self.put(&path, &body).await?, &first)?;
        }
        let rest = format!("{}/{}", repayments::LIST, self.ids.next());
        let too_much = self.put(&rest, &refund(AMOUNT)).await?;
        if too_much.status() != 422 {
            return too_much.broken("422 with code amount_exceeds_payment");
        }
        self.is_refused(&rest).await?;
        // What is left, and not a centavo more.
        let rest = format!("{}/{}", repayments::LIST, self.ids.next());
        let left = AMOUNT - AMOUNT / 4;
        self.put(&rest, &refund(left)).await?.object(repayments::LIST, left)?;
        let more = self.put(&format!("{}/{}", repayments::LIST, self.ids.next()), &refund(1)).await?;
        if more.status() == 422 { Ok(()) } else { more.broken("422: all of the payment has gone back") }
    }

    /// What was refused is refused or nothing.
    async fn is_refused(&self, path: &str) -> Rule {
        let seen = self.get(path).await?;
        match seen.object(repayments::LIST, AMOUNT) {
            Err(Defect::NotTested(_)) => Ok(()),
            _ if seen.absent().is_ok() => Ok(()),
            _ => broken(format!("{}, but it was refused", seen.says())),
        }
    }
}
