import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from centavo import Refused, call, pages, verified

card = {"number": "4111111111111111", "holder_name": "MARIA SOUZA", "exp_month": 12, "exp_year": 2039, "cvv": "123"}
order = {
    "amount": 10_000,
    "customer": {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"},
    "credit_card": card,
    "splits": [{"sub_recipient_id": os.environ["RECIPIENT"], "amount": 3_500}],
}
charge = call("POST", "/api/card", order, key="python-1")
again = call("POST", "/api/card", order, key="python-1")
assert again["txid"] == charge["txid"], "a retry makes no second charge"
try:
    call("POST", "/api/card", {**order, "credit_card": {**card, "number": "4000000000000002"}}, key="python-2")
except Refused as refused:
    print("refused:", refused.problem["code"])
print(charge["txid"], charge["status"], len(list(pages("/api/charges"))), "charges")


class Webhooks(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = verified(self.headers, body, os.environ["WEBHOOK_SECRET"])
        self.send_response(200)
        self.end_headers()
        print("webhook:", event["event"])
        self.server.heard = self.server.heard or event["event"] == "charge.paid"

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(os.environ.get("WEBHOOK_PORT", 8090))), Webhooks)
server.heard = False
while not server.heard:
    server.handle_request()
