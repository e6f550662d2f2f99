"""A marketplace's first hour, with the clients that openapi-python-client made of both descriptions."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook

from client import AuthenticatedClient, models
from client.api.charges import charge_card, create_or_look_up_pix, list_charges
from client.api.refunds import request_refund
from client.api.sandbox import pay_pix_in_sandbox
from client.api.sub_recipients import register_recipient
from operations import AuthenticatedClient as OperatorsClient
from operations import models as operators
from operations.api.decisions import approve_recipient, approve_refund
from operations.api.merchants import create_api_key, create_merchant

heard, received = {}, threading.Condition()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = Webhook(key.webhook_secret).verify(body, self.headers)
        self.send_response(204)
        self.end_headers()
        with received:
            heard.setdefault(told["event"], []).append(told)
            received.notify()

    def log_message(self, *_):
        pass


def hear(event):
    with received:
        assert received.wait_for(lambda: event in heard, 60), f"no {event} came"
        return heard[event]


receiver = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()

ops = OperatorsClient(base_url=os.environ["CENTAVO_OPS_URL"], token=os.environ["CENTAVO_OPS_TOKEN"])
opened = {"name": "Loja Exemplo", "document": "11222333000181", "split_enabled": True}
merchant = create_merchant.sync(client=ops, body=operators.MerchantRequest.from_dict(opened))
asked = operators.ApiKeyRequest(webhook_url=f"http://127.0.0.1:{receiver.server_port}/")
key = create_api_key.sync(merchant.id, client=ops, body=asked)
api = AuthenticatedClient(base_url=os.environ["CENTAVO_URL"], token=key.api_key)

recipient = register_recipient.sync(client=api, body=models.RegistrationRequest.from_dict({
    "register_information": {
        "type": "individual", "document_number": "52998224725", "name": "Ana Exemplo", "birthdate": "15/03/1990",
        "mother_name": "Mãe Exemplo", "phone_numbers": [{"ddd": "11", "number": "987654321"}],
        "address": {"street": "Rua Augusta", "number": "100", "neighborhood": "Consolação", "city": "São Paulo",
                    "state": "SP", "zip_code": "01305000"}},
    "bank_account": {"bank_code": "001", "agencia": "1234", "conta": "56789", "conta_dv": "2"}}))
approved = approve_recipient.sync(recipient.id, client=ops)
assert approved.status.value == "active", approved
assert models.RecipientWebhook.from_dict(hear("recipient.approved")[0]).recipient.id == recipient.id


def order(number="4111111111111111"):
    return models.CardChargeRequest.from_dict({
        "amount": 10000,
        "customer": {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"},
        "credit_card": {"number": number, "holder_name": "MARIA SOUZA", "exp_month": 12, "exp_year": 2039, "cvv": "123"},
        "splits": [{"sub_recipient_id": str(recipient.id), "amount": 3500}]})


first = charge_card.sync_detailed(client=api, body=order(), idempotency_key="order-1")
again = charge_card.sync_detailed(client=api, body=order(), idempotency_key="order-1")
assert isinstance(first.parsed, models.CardChargeResponse), first
assert again.parsed.txid == first.parsed.txid, "a retry with its key makes no second charge"
assert (first.headers.get("Idempotent-Replayed"), again.headers.get("Idempotent-Replayed")) == (None, "true")
declined = charge_card.sync(client=api, body=order("4000000000000002"))
assert isinstance(declined, models.Problem402) and declined.code.value == "card_declined", declined
told = models.ChargeWebhook.from_dict(hear("charge.paid")[0])
assert told.charge.txid == first.parsed.txid and told.charge.amount == 10000

pix = create_or_look_up_pix.sync(client=api, body=models.PixRequest.from_dict({
    "valor": "25.90", "nome": "Maria Souza", "cpf": "12345678909"}))
assert pay_pix_in_sandbox.sync(pix.txid, client=api).status.value == "CONCLUIDA"

refund = request_refund.sync(
    client=api, body=models.RefundRequest.from_dict({"payment_id": first.parsed.txid, "amount": 1000}))
assert isinstance(refund, models.Refund), refund
approve_refund.sync(refund.id, client=ops)
assert models.RefundWebhook.from_dict(hear("refund.approved")[0]).refund.charge_id == first.parsed.txid

found, page = [], 1
while len(found) < 3:
    listed = list_charges.sync(client=api, page=page, per_page=1)
    assert (listed.total, listed.pages, len(listed.items)) == (3, 3, 1), listed
    found += [charge.txid for charge in listed.items]
    page += 1
assert len(set(found)) == 3 and list_charges.sync(client=api, page=page, per_page=1).items == []
print("the flow of a marketplace went through; webhooks:", ", ".join(sorted(heard)))
