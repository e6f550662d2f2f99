//! A month of a merchant's life, over HTTP.

use serde_json::json;

use crate::world::{APPROVED, DAY, Merchant, REFUSED, SILENT, World, card, cnpj, pix, text, with_splits};

/// Names that try to get out of the line that they stand in.
pub(crate) const HOSTILE: [&str; 3] =
    ["\"; include \"/etc/passwd", "=cmd('calc')!A0", "Ana | * ! ; @ 2026-01-01 open Assets:Gift BRL"];

/// What happens, a line a step; `ana` and `bia` are recipients. One more event is one more line here, and one arm in [`step`].
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
    // The fees exceed the seller's part, and Available covers it.
    "card 10000 ana=9999",
    // Available does not cover it any more: a deficit, which the next PIX repays.
    "card 900000 bia=899999",
    "pix 400.00 bia=1",
    "days 9",
    "card 12345 ana=45",
    "days 25",
    "pix 50.00 ana=100 bia=100",
    "days 10",
];

/// Plays the month for a new merchant with hostile names, and gives it.
pub(crate) async fn play(world: &World) -> Merchant<'_> {
    let merchant = json!({"name": HOSTILE[0], "document": cnpj(1), "split_enabled": true, "cashout_enabled": true});
    let merchant = world.open(merchant).await;
    let recipients = [merchant.recipient(HOSTILE[1], 1).await, merchant.recipient(HOSTILE[2], 2).await];
    for line in MONTH {
        step(world, &merchant, &recipients, line).await;
    }
    merchant
}

async fn step(world: &World, merchant: &Merchant<'_>, recipients: &[String; 2], line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let (what, amount) = (words[0], words[1]);
    let splits = words[2..].iter().map(|split| {
        let (name, amount) = split.split_once('=').unwrap();
        (recipients[usize::from(name == "bia")].as_str(), amount.parse().unwrap())
    });
    let splits: Vec<(&str, i64)> = splits.collect();
    let of_card = |number| {
        let charge = card(amount.parse().unwrap(), number);
        if splits.is_empty() { charge } else { with_splits(charge, &splits) }
    };
    let of_pix = || if splits.is_empty() { pix(amount) } else { with_splits(pix(amount), &splits) };
    match what {
        "pix" => drop(merchant.paid_pix(&of_pix()).await),
        "card" => drop(merchant.post("/api/card", &of_card(APPROVED)).await.expect(201)),
        "refused" => drop(merchant.post("/api/card", &of_card(REFUSED)).await.expect(402)),
        "silent" => drop(merchant.post("/api/card", &of_card(SILENT)).await.expect(201)),
        "unpaid" => drop(merchant.post("/api/pix", &of_pix()).await.expect(201)),
        "cancelled" => {
            let txid = text(&merchant.post("/api/pix", &of_pix()).await.expect(201)["txid"]);
            merchant.post(&format!("/api/charges/{txid}/cancel"), &json!({})).await.expect(200);
        }
        "days" => drop(world.advance(amount.parse::<i64>().unwrap() * DAY).await),
        _ => panic!("{line}: there is no such step"),
    }
}
