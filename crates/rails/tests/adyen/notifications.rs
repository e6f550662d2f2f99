//! Notifications: which of them are believed, and the incidents that they report.

use actors::rails::{CardIncident, CardNotification};
use centavo_rails::adyen::NotBelieved;
use ledger::{Centavos, RailName};
use serde_json::{Value, json};
use testkit::adyen_player::notification;

use crate::{World, id};

const PSP: &str = "QFQTPCQ8HXSKGK82";
const ORIGINAL: &str = "9913140798220028";

fn read(world: &World, body: &Value) -> Result<Vec<CardNotification>, NotBelieved> {
    world.rail.notifications(body.to_string().as_bytes(), &RailName::parse("adyen").unwrap())
}

#[tokio::test]
async fn the_event_and_its_success_say_what_happened() {
    let world = World::new().await;
    for (event, success, expected) in [
        ("AUTHORISATION", "false", Some(CardIncident::NotAuthorized)),
        ("AUTHORISATION", "true", None),
        ("TECHNICAL_CANCEL", "true", Some(CardIncident::Cancelled)),
        ("TECHNICAL_CANCEL", "false", None),
        ("EXPIRE", "true", Some(CardIncident::Expired)),
        ("CAPTURE", "true", None),
        ("CAPTURE", "false", Some(CardIncident::CaptureFailed)),
        ("CAPTURE_FAILED", "true", Some(CardIncident::CaptureFailed)),
        ("REFUND", "true", None),
        ("REFUND", "false", Some(CardIncident::RefundFailed)),
        ("REFUND_FAILED", "true", Some(CardIncident::RefundFailed)),
        ("REFUNDED_REVERSED", "true", Some(CardIncident::RefundFailed)),
        ("NOTIFICATION_OF_CHARGEBACK", "true", Some(CardIncident::CaseOpened)),
        ("CHARGEBACK", "true", Some(CardIncident::CaseDebited)),
        ("CHARGEBACK_REVERSED", "true", Some(CardIncident::CaseWon)),
        ("SECOND_CHARGEBACK", "true", Some(CardIncident::CaseLostAgain)),
        ("SECOND_CHARGEBACK", "false", None),
        ("REPORT_AVAILABLE", "true", None),
        ("A_NEW_EVENT", "true", None),
    ] {
        let reference = id(1).txid();
        let notifications = read(&world, &notification(event, success, PSP, [&reference, ORIGINAL], 1_050)).unwrap();
        assert_eq!(notifications.first().map(|notification| notification.what), expected, "{event} {success}");
        for CardNotification { id: psp, object, amount, .. } in notifications {
            assert_eq!((psp.as_str(), object, amount), (PSP, id(1), Centavos(1_050)), "{event}");
        }
    }
}

#[tokio::test]
async fn each_of_the_eight_values_is_signed() {
    let world = World::new().await;
    let reference = id(1).txid();
    let good = notification("CHARGEBACK", "true", PSP, [&reference, ORIGINAL], 1_050);
    let item = "/notificationItems/0/NotificationRequestItem";
    for (member, value) in [
        ("pspReference", json!("QFQTPCQ8HXSKGK83")),
        ("originalReference", json!("9913140798220029")),
        ("originalReference", Value::Null),
        ("merchantAccountCode", json!("AnotherECOM")),
        ("merchantReference", json!(id(2).txid())),
        ("amount", json!({ "currency": "BRL", "value": 1_051 })),
        ("amount", json!({ "currency": "USD", "value": 1_050 })),
        ("eventCode", json!("CHARGEBACK_REVERSED")),
        ("success", json!("false")),
        ("additionalData", json!({})),
        ("additionalData", json!({ "hmacSignature": "AAAA" })),
    ] {
        let mut forged = good.clone();
        forged.pointer_mut(item).unwrap()[member] = value;
        assert_eq!(read(&world, &forged), Err(NotBelieved::NotSigned), "{forged}");
    }
    // What is not signed is shown alone.
    let mut shown = good.clone();
    let of_item = shown.pointer_mut(item).unwrap();
    (of_item["reason"], of_item["mood"]) = (json!("Fraud"), json!(1));
    of_item["additionalData"]["defensePeriodEndsAt"] = json!("2026-12-31T03:03:07-03:00");
    let notifications = read(&world, &shown).unwrap();
    assert_eq!((notifications[0].reason.as_str(), notifications[0].due_at.is_some()), ("Fraud", true));
    // One item that is not signed makes none believed.
    let mut two = good.clone();
    let mut second = good["notificationItems"][0].clone();
    second["NotificationRequestItem"]["success"] = json!("false");
    two["notificationItems"].as_array_mut().unwrap().push(second);
    assert_eq!(read(&world, &two), Err(NotBelieved::NotSigned));
    for body in ["", "{}", "[]", "null", "{\"notificationItems\":[{}]}"] {
        let read = world.rail.notifications(body.as_bytes(), &RailName::parse("adyen").unwrap());
        assert_eq!(read, Err(NotBelieved::Malformed), "{body}");
    }
}
