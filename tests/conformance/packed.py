"""Charges, lists, and verifies a webhook with the packed client."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from inspect import signature
from pkgutil import walk_packages

import centavo.rest.api
from centavo import Declined, Refused, WrongSignature, connect, expect, pages, verified
from centavo.rest.api.charges import charge_card, create_or_look_up_pix, get_charge, get_charge_qr_code, list_charges
from centavo.rest.api.events import list_event_tries, list_events
from centavo.rest.api.plans_and_subscriptions import create_plan, list_plans
from centavo.rest.models import (
    CardChargeRequest,
    CardChargeResponse,
    Charge,
    ChargeWebhook,
    ListChargesMetadata,
    PixRequest,
    PixResponse,
    PlanRequest,
)

heard: list[ChargeWebhook] = []
received = threading.Condition()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = verified(dict(self.headers), body, os.environ["WEBHOOK_SECRET"])
        for headers, text in [(dict(self.headers), body + b" "), ({}, body)]:
            try:
                verified(headers, text, os.environ["WEBHOOK_SECRET"])
                raise AssertionError("a changed webhook is verified")
            except WrongSignature:
                pass
        self.send_response(204)
        self.end_headers()
        with received:
            heard.extend([ChargeWebhook.from_dict(event)] if event["event"] == "charge.paid" else [])
            received.notify()

    def log_message(self, *_: object) -> None:
        pass


receiver = HTTPServer(("127.0.0.1", int(os.environ["WEBHOOK_PORT"])), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
client = connect(os.environ["CENTAVO_URL"], os.environ["CENTAVO_API_KEY"])


def order(number: str) -> CardChargeRequest:
    return CardChargeRequest.from_dict({
        "amount": 10000,
        "customer": {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"},
        "credit_card": {"number": number, "holder_name": "MARIA SOUZA", "exp_month": 12, "exp_year": 2039, "cvv": "123"},
    })


paid = order("4111111111111111")
charges = [charge_card.sync(client=client, body=paid, idempotency_key="packed-py") for _ in range(2)]
first, again = [expect(CardChargeResponse, charge) for charge in charges]
assert first.txid == again.txid, "a retry with its key makes no second charge"
other = expect(CardChargeResponse, charge_card.sync(client=client, body=paid))
try:
    charge_card.sync(client=client, body=order("4000000000000002"))
except Declined as declined:
    refused = expect(Charge, get_charge.sync(declined.txid, client=client))
try:
    get_charge_qr_code.sync(first.txid, client=client)
except Refused as conflict:
    assert (conflict.status, conflict.code) == (409, "charge_not_pending"), conflict
listed = [charge.txid for charge in pages(list_charges.sync, client)]
assert {first.txid, other.txid, refused.txid} <= set(listed) and len(listed) == len(set(listed)), listed
labelled = {"valor": "8.00", "nome": "Maria Souza", "cpf": "12345678909", "metadata": {"shop": "py"}}
pix = expect(PixResponse, create_or_look_up_pix.sync(client=client, body=PixRequest.from_dict(labelled)))
of_shop = ListChargesMetadata.from_dict({"shop": "py"})
assert [charge.txid for charge in pages(list_charges.sync, client, metadata=of_shop)] == [pix.txid]
plan = {"tag": "packed-py", "amount": 100, "billingCycle": "ANNUAL", "totalBillingCycles": 1}
create_plan.sync(client=client, body=PlanRequest.from_dict(plan))
assert "packed-py" in [plan.tag for plan in pages(list_plans.sync, client)]
event = next(pages(list_events.sync, client))
assert all(one.at for one in pages(list_event_tries.sync, client, id=event.id))
modules = [import_module(one.name) for one in walk_packages(centavo.rest.api.__path__, "centavo.rest.api.")]
lists = [module.sync for module in modules if hasattr(module, "sync") and "limit" in signature(module.sync).parameters]
walked = [len(list(pages(one, client))) for one in lists if "id" not in signature(one).parameters]
assert len(walked) >= 11, walked
with received:
    assert received.wait_for(lambda: first.txid in [event.charge.txid for event in heard], 60), heard
print("the packed client has charged, listed and verified")
