#!/usr/bin/env python3
"""Bridge from Centavo's rail protocol (docs/rails/rail.yaml) to Stripe: card charges and refunds.

    STRIPE_KEY=sk_test_... BRIDGE_SECRET=... python3 stripe.py 127.0.0.1:8090

It keeps nothing of its own: our id is in Stripe's metadata. An intent is created unconfirmed, found
by our id, and confirmed once; after any error it is retrieved, and its status is the word. The
client's own retries are off: one order is one POST. One bridge process serves one Stripe account.
Needs stripe 16.1.0. STRIPE_API names another API, such as localstripe's.
"""
import json
import os
import re
import sys
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.pop(0)  # This folder has a file with the name of the package.
import stripe

SECRET = os.environ["BRIDGE_SECRET"]
ID = re.compile(r"[0-9a-f]{32}\Z")
CODES = {
    "insufficient_funds": "insufficient_funds", "expired_card": "expired_card", "fraudulent": "suspected_fraud",
    "incorrect_number": "invalid_card", "incorrect_cvc": "invalid_card", "invalid_number": "invalid_card",
}
client = stripe.StripeClient(
    os.environ["STRIPE_KEY"],
    base_addresses={"api": os.environ.get("STRIPE_API", "https://api.stripe.com")},
    max_network_retries=0,
).v1
# One request at a time for an id: between looking and creating nobody else may create.
locks, locks_lock = {}, threading.Lock()


class Problem(Exception):
    """An answer that is a problem document."""

    def __init__(self, status, code, id=None, detail=None):
        self.status = status
        self.body = {"title": code, "status": status, "code": code, "id": id, "detail": detail}


def instant(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def found(items, id):
    """The object with our id in its metadata; None where a whole list has none."""
    return next((item for item in items.auto_paging_iter() if item.to_dict()["metadata"].get("centavo") == id), None)


def intent_of(id):
    intent = found(client.payment_intents.list({"limit": 100}), id)
    return intent and client.payment_intents.retrieve(intent.id, {"expand": ["latest_charge.balance_transaction"]})


def card_answer(id, intent):
    """What an intent says; its status alone decides."""
    if intent is None:
        raise Problem(404, "not_found", id)
    if intent.status == "succeeded":
        charge = intent.latest_charge
        return {"id": id, "status": "captured", "amount": intent.amount, "fee": charge.balance_transaction.fee,
                "reference": intent.id, "at": instant(charge.created)}
    error = intent.last_payment_error
    if error and intent.status in ("requires_payment_method", "canceled"):
        raise Problem(422, CODES.get(getattr(error, "decline_code", None) or error.code, "declined"), id)
    if intent.status == "canceled":
        return {"id": id, "status": "closed"}
    # Unconfirmed, or the issuer has not decided: neither is an outcome.
    return {"id": id, "status": "under_way", "amount": intent.amount}


def create_intent(id, order, method=None):
    details = {"amount": order["amount"], "currency": "brl",
               "metadata": {"centavo": id, "order": fingerprint(order)}}
    if method:
        details["payment_method"] = method
    # One intent an id, also where two bridges run: Stripe keeps the key for a day.
    return client.payment_intents.create(details, {"idempotency_key": f"intent-{id}"})


def fingerprint(order):
    """What makes two orders the same, without the card."""
    return json.dumps({name: value for name, value in order.items() if name != "card"}, sort_keys=True)


def must_be_same(id, known, order):
    if known.to_dict()["metadata"].get("order") != fingerprint(order):
        raise Problem(409, "other_order", id)


def payment_method(order):
    card = order["card"]
    if "token" in card:
        return card["token"]
    details = {name: card[name] for name in ("number", "exp_month", "exp_year")} | {"cvc": card["cvv"]}
    return client.payment_methods.create({"type": "card", "card": details}).id


def charge(id, order):
    intent = intent_of(id)
    if intent is not None:
        if intent.status != "canceled":
            must_be_same(id, intent, order)
        # An intent that was left unconfirmed is ended by a close, and never confirmed again.
        return card_answer(id, intent)
    if order["installments"] != 1:
        raise Problem(422, "unsupported", id, "installments are not offered here")
    try:
        method = payment_method(order)
    except stripe.CardError as error:
        raise Problem(422, CODES.get(error.code, "declined"), id)
    intent = create_intent(id, order, method)
    try:
        client.payment_intents.confirm(intent.id)
    except stripe.StripeError:
        pass  # Refused, or the answer was lost: its status says.
    return card_answer(id, intent_of(id))


def close_card(id):
    intent = intent_of(id)
    if intent is None:
        # A canceled intent remembers for good that the id is closed; any amount will do.
        intent = create_intent(id, {"amount": 100})
    try:
        client.payment_intents.cancel(intent.id)
    except stripe.StripeError:
        pass  # It has ended, or the answer was lost: its status says.
    return card_answer(id, intent_of(id))


def refund_answer(id, refund):
    if refund is None:
        raise Problem(404, "not_found", id)
    status = {"succeeded": "done", "pending": "under_way", "requires_action": "under_way"}.get(refund.status)
    if status is None:
        raise Problem(422, "declined", id, refund.status)
    return {"id": id, "status": status, "amount": refund.amount, "reference": refund.id,
            "at": instant(refund.created)}


def repay(id, order):
    if order["kind"] == "dispute":
        raise Problem(422, "unsupported", id, "disputes are accepted at Stripe's dashboard")
    intent = intent_of(order["charge"])
    if intent is None or intent.id != order["payment"] or intent.status != "succeeded":
        raise Problem(422, "unknown_payment", id)
    known = found(client.refunds.list({"limit": 100}), id)
    if known is not None:
        must_be_same(id, known, order)
        return refund_answer(id, known)
    # Not every server compares the sum: what has gone back is counted before.
    refunds = client.refunds.list({"payment_intent": intent.id, "limit": 100})
    before = sum(refund.amount for refund in refunds.auto_paging_iter()
                 if refund.status not in ("failed", "canceled"))
    if before + order["amount"] > intent.amount:
        raise Problem(422, "amount_exceeds_payment", id)
    try:
        client.refunds.create({"payment_intent": intent.id, "amount": order["amount"],
                               "metadata": {"centavo": id, "order": fingerprint(order)}},
                              {"idempotency_key": f"refund-{id}"})
    except stripe.StripeError:
        if found(client.refunds.list({"limit": 100}), id) is None:
            raise  # Unknown: it may still turn up.
    return refund_answer(id, found(client.refunds.list({"limit": 100}), id))


def check_order(order, names):
    amount = order.get("amount")
    if type(amount) is not int or amount < 1 or any(name not in order for name in names):
        raise Problem(400, "invalid")


def capabilities():
    return {"test": not os.environ["STRIPE_KEY"].startswith("sk_live_"), "serves": ["card"],
            "repeats": "same", "remembers_s": 24 * 3600, "horizon_s": 60, "closes": True,
            "answers_within_ms": 15000}


def route(method, path, body):
    if (method, path) == ("GET", ["capabilities"]):
        return capabilities()
    if (method, path) == ("GET", ["settlements"]):
        return {"batch": None}  # Settlement comes by file: docs/rails/README.md.
    if (method, path) == ("POST", ["tokens"]):
        return {"token": payment_method(body)}
    if len(path) < 2 or path[0] not in ("cards", "repayments"):
        raise Problem(404, "no_such_path")
    if not ID.match(path[1]):
        raise Problem(400, "invalid")
    list_, id = path[0], path[1]
    with locks_lock:
        # A refund looks at the sum of its charge's refunds: they wait for each other.
        lock = locks.setdefault(body.get("charge", id) if list_ == "repayments" else id, threading.Lock())
    with lock:
        if (method, path[2:], list_) == ("PUT", ["close"], "cards"):
            return close_card(id)
        if (method, path[2:], list_) == ("PUT", [], "cards"):
            check_order(body, ("installments", "method", "card"))
            return charge(id, body)
        if (method, path[2:], list_) == ("PUT", [], "repayments"):
            check_order(body, ("kind", "charge", "payment"))
            return repay(id, body)
        if (method, path[2:]) == ("GET", []):
            return (card_answer(id, intent_of(id)) if list_ == "cards"
                    else refund_answer(id, found(client.refunds.list({"limit": 100}), id)))
    raise Problem(404, "no_such_path")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        try:
            length = int(self.headers.get("content-length") or 0)
            text = self.rfile.read(length)
            if self.headers.get("authorization") != f"Bearer {SECRET}":
                raise Problem(401, "unauthorized")
            path = self.path.partition("?")[0]
            body = json.loads(text) if text else {}
            status, body = 200, route(self.command, path.split("/")[1:], body)
        except Problem as problem:
            status, body = problem.status, problem.body
        except ValueError:
            status, body = 400, Problem(400, "invalid").body
        except Exception as error:
            # Unknown is no outcome: Centavo asks by the id.
            print(self.command, self.path, type(error).__name__, file=sys.stderr)
            status, body = 503, Problem(503, "unknown").body
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/" + ("json" if status < 400 else "problem+json"))
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = answer

    def log_message(self, *_):
        pass  # Bodies hold cards; the address alone is of no use.


if __name__ == "__main__":
    host, _, port = (sys.argv[1:] or ["127.0.0.1:8090"])[0].rpartition(":")
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
