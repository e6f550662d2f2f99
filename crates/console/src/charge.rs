//! Page of one charge: its terms, the way of its money, its entries and its history.

use ledger::{Charge, ChargeOutcome, Dispute, Event, LedgerId, PaymentMethod, Record, Refund, Timestamp};
use maud::{Markup, html};
use store::cut::Position;
use wire::cut_text::record_name;
use wire::mask;

use crate::money_flow::{self, ChargePart, Flow, PartOf};
use crate::records::{facts_of, record_link};
use crate::show::Facts;
use crate::table::Table;
use crate::wire_words::status_word;
use crate::{
    PageRequest, Screen, Section, Visit, Word, anticipations, dispute, notes, pager_named, paging, part_named, refund,
    show, webhooks, wire_words, words,
};
use ops::charges;
use ops::notes::NoteSubject;
use ops::{Desk, ItemKind};
use web::views::charge::{CardView, payer};
use web::views::dispute::dispute_status;
use web::views::fiscal::fiscal_documents;
use web::views::labels::labels;
use web::views::refund::refund_status;
use web::{Result, query};

/// Records of the charge on a page.
const RECORDS_A_PAGE: u64 = 20;
/// Postings of these Records that are shown; the page of a Record has all of it.
const POSTINGS_MAX: usize = 60;

/// The page of a charge.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id: txid, parts } = &request;
    let charge = charges::named(desk, txid)?;
    let id = charge.id;
    visit.sees(Some(desk.engine.ids().group(id)))?;
    let (records, are_more) = charges::records_about(&desk.engine, id)?;
    let page = part_named(&query(parts)?, "records", RECORDS_A_PAGE)?;
    let shown = paging::items(&records, page);
    let title = format!("{} {}", visit.say(words::CHARGE_OF), visit.money(charge.terms.amount.0));
    let body = html! {
        p { span.badge.(status_class(&charge.outcome)) { (visit.say(wire_words::charge_status(&charge.outcome))) } }
        @if are_more { p.warning { (visit.say(words::MORE_RECORDS)) } }
        (head(desk, visit, &charge, &records))
        (picture(desk, visit, &charge, due(&records)))
        (anticipations::of_charge(&desk.engine, visit, &charge, &records, parts)?)
        (decisions(desk, visit, shown)?)
        (entries(desk, visit, shown))
        (timeline(desk, visit, shown)?)
        (pager_named(visit, parts, "records", page, records.len() as u64))
        (webhooks::of_records(desk, visit, desk.engine.ids().group(id), shown)?)
        @if matches!(charge.outcome, ChargeOutcome::Paid { .. }) { (refund::form(visit, &charge.id.txid())) (dispute::form(visit, &charge.id.txid(), charge.terms.method)) }
        (notes::section(desk, visit, NoteSubject::Object(id))?)
    };
    Ok(Screen { section: Section::Found, title, body })
}

/// When the money of a card charge falls due.
fn due(records: &[(Position, Record)]) -> Option<(Timestamp, Timestamp)> {
    records.iter().flat_map(|(_, record)| &record.events).find_map(|event| match event {
        Event::CardCaptured { seller_due, splits_due, .. } => Some((seller_due.start(), splits_due.start())),
        _ => None,
    })
}

fn status_class(outcome: &ChargeOutcome) -> &'static str {
    match outcome {
        ChargeOutcome::Paid { .. } => "good",
        ChargeOutcome::Refused(_) | ChargeOutcome::Cancelled => "bad",
        ChargeOutcome::Pending | ChargeOutcome::Unanswered => "open",
    }
}

fn head(desk: &Desk, visit: &Visit, charge: &Charge, records: &[(Position, Record)]) -> Markup {
    let engine = &desk.engine;
    let merchant = LedgerId::Merchant(engine.ids().group(charge.id));
    let payer = payer(engine, charge.id, charge.payer.as_ref());
    let moment = |at| show::moment(visit.language, at);
    let method = visit.say(wire_words::method(charge.terms.method));
    let method = html! {
        @if let Some(card) = &charge.card {
            @let card = CardView::of(card);
            (method) ", " (visit.say(wire_words::brand(card.brand))) " " (card.bin) "••••••" (card.last4) ", " (charge.terms.installments) "×"
        } @else {
            (method)
        }
    };
    let mut facts = Facts::of(visit);
    facts
        .code(words::TXID, &*charge.id.txid())
        .add(words::MERCHANT, show::owner_link(engine, visit.language, merchant))
        .add(words::METHOD, method)
        .add(words::PAYER, html! { bdi { (payer.name) } " " span.dim { (mask::document(&payer.document)) } })
        .add(words::CREATED, moment(charge.id.created_at()));
    match &charge.outcome {
        ChargeOutcome::Paid { at, end_to_end_id } => {
            facts.add(words::PAID_AT, moment(*at)).code(words::END_TO_END, end_to_end_id.as_deref())
        }
        _ => facts.add(words::EXPIRES, charge.expires_at.map(moment)),
    };
    let labels = labels(engine, charge, &payer);
    let values = html! { @for (key, value) in &labels.metadata { bdi { (key) } ": " bdi { (value) } br; } };
    facts
        .word(words::NOTES, unpaid_because(charge, records))
        .add(words::DUE_AT, due(records).map(|(seller, _)| moment(seller)))
        .text(words::REFERENCE, labels.reference.as_deref())
        .add(words::METADATA, (!labels.metadata.is_empty()).then_some(values));
    let documents = fiscal_documents(engine, charge, false);
    if !documents.is_empty() {
        let keys = html! {
            @for document in documents {
                code { (document.key) }
                @if let Some(of) = &document.of { " " a href={"/console/recipients/" (of)} { (visit.say(words::RECIPIENT)) } }
                @if !document.issuer_known { " " span.dim { (visit.say(words::ISSUER_UNKNOWN)) } }
                br;
            }
        };
        facts.add(words::FISCAL_DOCUMENTS, keys);
    }
    facts.text(words::DESCRIPTION, payer.description.as_deref().filter(|text| !text.is_empty()));
    html! { section.card aria-label=(visit.say(words::CHARGE)) { (facts.shown()) } }
}

/// Why a charge ended unpaid; none for one that is paid or may still be.
fn unpaid_because(charge: &Charge, records: &[(Position, Record)]) -> Option<Word> {
    let cancels = |record: &&Record| record.events.iter().any(|event| matches!(event, Event::PixCancelled { .. }));
    match charge.outcome {
        ChargeOutcome::Refused(refusal) => Some(wire_words::refusal(refusal)),
        ChargeOutcome::Cancelled => {
            let cancelled = records.iter().map(|(_, record)| record).find(cancels);
            let is_late = |at: Timestamp| charge.expires_at.is_some_and(|expiry| expiry <= at);
            let has_expired = cancelled.is_none_or(|record| is_late(record.effective_at));
            Some(if has_expired { words::EXPIRED_UNPAID } else { words::CANCELLED_UNPAID })
        }
        ChargeOutcome::Paid { .. } | ChargeOutcome::Pending | ChargeOutcome::Unanswered => None,
    }
}

/// Where the money of a paid charge went, or what was asked of one that is not paid.
fn picture(desk: &Desk, visit: &Visit, charge: &Charge, due: Option<(Timestamp, Timestamp)>) -> Markup {
    let (engine, terms) = (&desk.engine, &charge.terms);
    let group = engine.ids().group(charge.id);
    let at = |at: Option<Timestamp>| {
        at.map(|at| html! { (visit.say(words::DUE_AT)) " " (show::short_moment(visit.language, at)) })
    };
    let merchant = LedgerId::Merchant(group);
    let mut parts = vec![ChargePart {
        name: show::owner_name(engine, visit.language, merchant),
        link: Some(show::owner_page(engine, merchant)),
        detail: at(due.map(|(seller, _)| seller)),
        amount: terms.seller_net().0,
        of: PartOf::Seller,
    }];
    parts.extend(terms.splits.iter().map(|split| {
        let ledger = LedgerId::Recipient(group, split.recipient);
        ChargePart {
            name: show::owner_name(engine, visit.language, ledger),
            link: Some(show::owner_page(engine, ledger)),
            detail: at(due.map(|(_, splits)| splits)),
            amount: split.amount.0,
            of: PartOf::Recipient,
        }
    }));
    let fees = [
        (words::FEE_MDR, terms.commission.mdr),
        (words::FEE_ANTIFRAUD, terms.commission.antifraud),
        (words::FEE_MARGIN, terms.commission.margin),
        (words::FEE_PIX, terms.commission.pix),
    ];
    let fees: Vec<String> = fees
        .into_iter()
        .filter(|(_, amount)| !amount.is_zero())
        .map(|(name, amount)| format!("{} {}", visit.say(name), show::column(visit.language, amount.0.into())))
        .collect();
    parts.push(ChargePart {
        name: visit.say(words::FEES).to_owned(),
        link: None,
        detail: (!fees.is_empty()).then(|| html! { (fees.join(" · ")) }),
        amount: terms.commission.total().0,
        of: PartOf::Platform,
    });
    let rail = if terms.method == PaymentMethod::Pix { words::INSTITUTION } else { words::ACQUIRER };
    let (heading, rail) = match charge.outcome {
        ChargeOutcome::Paid { .. } => (words::FLOW, Some(rail)),
        _ => (words::CHARGE_ASKED, None),
    };
    money_flow::drawn(visit.language, &Flow { heading, rail, total: terms.amount.0, parts: &parts })
}

/// The refunds and disputes that the Records of a charge name.
fn decisions(desk: &Desk, visit: &Visit, records: &[(Position, Record)]) -> Result<Markup> {
    let (mut refunds, mut disputes) = (Vec::new(), Vec::new());
    for event in records.iter().flat_map(|(_, record)| &record.events) {
        match event {
            Event::RefundRequested { id, .. } => refunds.extend(desk.engine.object::<Refund>(*id)?),
            Event::DisputeOpened { id, .. } => disputes.extend(desk.engine.object::<Dispute>(*id)?),
            _ => {}
        }
    }
    let refunds = refunds.iter().map(|refund| {
        (words::REFUND, refund.id, refund.amount, status_word(ItemKind::Refunds, refund_status(&refund.decision)))
    });
    let disputes = disputes.iter().map(|dispute| {
        let status = status_word(ItemKind::Disputes, dispute_status(&dispute.decision));
        (words::DISPUTE, dispute.id, dispute.amount, status)
    });
    let rows: Vec<_> = refunds.chain(disputes).collect();
    let table = Table::of(visit.language, words::DECISIONS, rows.iter().copied())
        .text(words::KIND, |(kind, id, ..)| {
            html! { a href={"/console/queue/" (id.uuid())} { (visit.say(kind)) } " " code { (id.uuid()) } }
        })
        .text(words::WHEN, |(_, id, ..)| show::short_moment(visit.language, id.created_at()))
        .text(words::STATUS, |(.., status)| visit.say(status))
        .amount(words::AMOUNT, |(_, _, amount, _)| visit.money(amount.0));
    Ok(html! {
        @if !rows.is_empty() {
            section.card aria-labelledby="decisions" {
                h2 id="decisions" { (visit.say(words::REFUNDS)) " · " (visit.say(words::DISPUTES)) }
                (table.shown())
            }
        }
    })
}

/// The entries of the first Records, as far as there is room.
fn entries(desk: &Desk, visit: &Visit, records: &[(Position, Record)]) -> Markup {
    let mut room = POSTINGS_MAX;
    let with_entries: Vec<_> = records.iter().filter(|(_, record)| !record.entries.is_empty()).collect();
    let mut cards = Vec::new();
    for (sequence, record) in &with_entries {
        if room > 0 {
            cards.push((sequence, record, show::entries(&desk.engine, visit.language, &record.entries, &mut room)));
        }
    }
    html! {
        @for (sequence, record, shown) in &cards {
            section.card aria-labelledby={"entries-" (record_name(**sequence))} {
                h2 id={"entries-" (record_name(**sequence))} {
                    (visit.say(words::ENTRIES)) ": " (facts_of(visit.language, record)) " "
                    span.aside { "(" (record_link(visit.language, **sequence)) ")" }
                }
                (shown)
            }
        }
        @if cards.len() < with_entries.len() { p.dim { (visit.say(words::MORE_ON_RECORD)) } }
    }
}

/// The Records about an object, with their blocks.
pub(crate) fn timeline(desk: &Desk, visit: &Visit, records: &[(Position, Record)]) -> Result<Markup> {
    let mut rows = Vec::new();
    for (sequence, record) in records {
        rows.push((sequence, record, desk.engine.block(*sequence)?.map(|block| format!("{:?}", block.hash()))));
    }
    Ok(html! {
        (visit.card("timeline", words::TIMELINE, html! {
            ol.timeline {
                @for (sequence, record, hash) in rows {
                    li {
                        (show::moment(visit.language, record.takes_effect_at())) " "
                        strong { (facts_of(visit.language, record)) } " · " (record_link(visit.language, *sequence))
                        @if let Some(hash) = hash {
                            ", " (visit.say(words::BLOCK)) " " code title=(hash) { (hash.get(..12).unwrap_or_default()) "…" }
                        }
                        @if let Some(name) = &record.operator { " · " (name) }
                        @if let Some((seller, splits)) = matures(record) {
                            br;
                            span.dim {
                                (visit.say(words::SELLER_MATURES)) " " (show::moment(visit.language, seller))
                                @if let Some(splits) = splits {
                                    ", " (visit.say(words::SPLITS_MATURE)) " " (show::moment(visit.language, splits))
                                }
                            }
                        }
                    }
                }
            }
        }))
    })
}

/// When the seller's part of a captured card falls due, and when the splits do, if it has some.
fn matures(record: &Record) -> Option<(Timestamp, Option<Timestamp>)> {
    record.events.iter().find_map(|event| match event {
        Event::CardCaptured { terms, seller_due, splits_due, .. } => {
            Some((seller_due.start(), (!terms.splits.is_empty()).then(|| splits_due.start())))
        }
        _ => None,
    })
}
