import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from centavo_guide import Refused, call, pages, verified

card = {"number": "4111111111111111", "holder_name": "MARIA SOUZA", "exp_month": 12, "exp_year": 2039, "cvv": "123"}
run = os.urandom(4).hex()  # a new order each time: its key is its own
order = {
    "amount": 10_000,
    "customer": {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"},
    "credit_card": card,
    "splits": [{"sub_recipient_id": os.environ["RECIPIENT"], "amount": 3_500}],
}


class Webhooks(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = verified(self.headers, body, os.environ["WEBHOOK_SECRET"])
        except (TypeError, ValueError):
            self.send_error(400)
            return
        self.send_response(200)
        self.end_headers()
        # Those of charges before come too, when their next try is due.
        if event["event"] == "charge.paid" and event["charge"]["txid"] == charge["txid"]:
            print("webhook:", event["event"])
            self.server.heard = True

    def log_message(self, *_):
        pass


# It listens first. Webhooks that come meanwhile wait until they are handled.
server = HTTPServer(("127.0.0.1", int(os.environ.get("WEBHOOK_PORT", 8090))), Webhooks)
charge = call("POST", "/api/card", order, key=f"python-{run}-1")
again = call("POST", "/api/card", order, key=f"python-{run}-1")
assert again["txid"] == charge["txid"], "a retry makes no second charge"
try:
    call("POST", "/api/card", {**order, "credit_card": {**card, "number": "4000000000000002"}}, key=f"python-{run}-2")
except Refused as refused:
    print("refused:", refused.problem["code"])
print(charge["txid"], charge["status"], len(list(pages("/api/charges"))), "charges")

server.heard = False
server.timeout = 60
server.handle_timeout = lambda: exit("no webhook in a minute: GET /api/events tells what was tried")
while not server.heard:
    server.handle_request()
