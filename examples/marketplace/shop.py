"""Marketplace: three sellers, a cart, PIX with its QR code, cards, webhooks, refunds and payouts, on one page.

A real shop on the packed client of `clients/python`, whose only other needs are Python and SQLite. An order is written
before it is charged, and is the `reference` of its charge: so a webhook finds it, also when the answer to the charge
was lost. What a form shows comes from the database; the balances of the sellers come from Centavo.
"""

import base64
import hashlib
import html
import os
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from account import Account
from centavo import Declined, Refused, WrongSignature, expect, pages, verified
from centavo.rest.api.charges import charge_card, create_or_look_up_pix, get_charge_qr_code, list_charges
from centavo.rest.api.refunds import request_refund
from centavo.rest.api.sandbox import pay_pix_in_sandbox
from centavo.rest.api.sub_recipients import list_recipients, withdraw
from centavo.rest.models import CardChargeRequest, PixRequest, PixResponse, RefundRequest

PRODUCTS = [("Mug", 3_990), ("Notebook", 2_450), ("T-shirt", 7_900)]
"""What each seller sells, and its price in centavos."""

SELLER_PERCENT = 90
"""What a seller gets of its price; the marketplace keeps the rest, and pays the fees."""

PAYER = {"name": "Maria Souza", "email": "maria@example.com", "document": "12345678909"}

TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, method TEXT, total INTEGER, txid TEXT, status TEXT,
    code TEXT, image TEXT, refunded INTEGER DEFAULT 0, refund TEXT, note TEXT);
CREATE TABLE IF NOT EXISTS parts (order_id INTEGER, seller INTEGER, amount INTEGER);
CREATE TABLE IF NOT EXISTS webhooks (id TEXT PRIMARY KEY);
"""


class Shop:
    """The orders, and what Centavo does for them."""

    def __init__(self, folder: str, port: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self.database = os.path.join(folder, "shop.db")
        self.write(TABLES)
        self.account = Account.of(folder, f"http://127.0.0.1:{port}/webhooks")
        self.client = self.account.client
        self.catch_up()

    def write(self, script: str, *values: object) -> None:
        """Writes in a transaction of its own."""
        with closing(sqlite3.connect(self.database)) as database, database:
            database.execute(script, values) if values else database.executescript(script)

    def read(self, query: str, *values: object) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(self.database)) as database:
            database.row_factory = sqlite3.Row
            return database.execute(query, values).fetchall()

    def catch_up(self) -> None:
        """Reads the charges of orders that were open when the shop ended, by their reference."""
        for order in self.read("SELECT id FROM orders WHERE status IN ('new', 'pending')"):
            for charge in pages(list_charges.sync, self.client, reference=self.reference(order["id"])):
                self.update(charge.to_dict())

    def reference(self, order: int) -> str:
        return f"{self.account.id}-{order}"

    def update(self, charge: dict) -> None:
        """Writes what a charge has become into its order."""
        self.write("UPDATE orders SET txid = ?, status = ?, refunded = ? WHERE ? || '-' || id = ?", charge["txid"],
                   charge["status"], charge["refunded_amount"], self.account.id, charge.get("reference"))

    def order(self, quantities: list[int], method: str, card: dict) -> None:
        """Writes an order, and charges it."""
        prices = [price * quantity for (_, price), quantity in zip(PRODUCTS, quantities)]
        if (total := sum(prices)) == 0:
            return
        with closing(sqlite3.connect(self.database)) as database, database:
            values = (method, total, "new")
            order = database.execute("INSERT INTO orders (method, total, status) VALUES (?, ?, ?)", values).lastrowid
            parts = [(order, seller, price * SELLER_PERCENT // 100) for seller, price in enumerate(prices) if price]
            database.executemany("INSERT INTO parts VALUES (?, ?, ?)", parts)
        labels = {"reference": self.reference(order), "reference_unique": True, "splits": self.splits(order)}
        try:
            self.pay_by_pix(order, total, labels) if method == "pix" else self.pay_by_card(order, total, labels, card)
        except Declined as declined:
            self.write("UPDATE orders SET status = 'RECUSADA', txid = ?, note = ? WHERE id = ?", declined.txid,
                       declined.message, order)
        except Refused as refused:
            wrong = ", ".join(error["message"] for error in refused.errors)
            self.write("UPDATE orders SET status = 'refused', note = ? WHERE id = ?", wrong or refused.message, order)

    def splits(self, order: int) -> list[dict]:
        parts = self.read("SELECT seller, amount FROM parts WHERE order_id = ?", order)
        return [{"sub_recipient_id": self.account.sellers[seller], "amount": amount} for seller, amount in parts]

    def pay_by_pix(self, order: int, total: int, labels: dict) -> None:
        body = {"valor": f"{total // 100}.{total % 100:02}", "nome": PAYER["name"], "cpf": PAYER["document"], **labels}
        answer = create_or_look_up_pix.sync(client=self.client, body=PixRequest.from_dict(body),
                                            idempotency_key=labels["reference"])
        pix = expect(PixResponse, answer)
        # Read while nobody can have paid: a code that is paid has no image.
        image = get_charge_qr_code.sync(pix.txid, client=self.client)
        self.write("UPDATE orders SET txid = ?, code = ?, image = ?, status = iif(status = 'new', 'pending', status) "
                   "WHERE id = ?", pix.txid, pix.pix_copia_e_cola, image, order)

    def pay_by_card(self, order: int, total: int, labels: dict, card: dict) -> None:
        body = {"amount": total, "customer": PAYER, "credit_card": card, **labels}
        charge = charge_card.sync(client=self.client, body=CardChargeRequest.from_dict(body),
                                  idempotency_key=labels["reference"])
        self.write("UPDATE orders SET txid = ?, status = ? WHERE id = ?", charge.txid, charge.status, order)

    def refund(self, order: int) -> None:
        """Asks for the whole amount back, each seller's part included. An operator decides."""
        row = self.read("SELECT txid, total FROM orders WHERE id = ?", order)[0]
        body = {"payment_id": row["txid"], "amount": row["total"], "splits": self.splits(order)}
        request_refund.sync(client=self.client, body=RefundRequest.from_dict(body),
                            idempotency_key=f"refund-{self.reference(order)}")
        self.write("UPDATE orders SET refund = 'asked for' WHERE id = ?", order)

    def hear(self, headers: dict, body: bytes) -> None:
        """Processes a webhook once."""
        event = verified(headers, body, self.account.webhook_secret)
        if self.read("SELECT id FROM webhooks WHERE id = ?", headers["webhook-id"]):
            return
        if "charge" in event:
            self.update(event["charge"])
        if event["event"] in ("refund.approved", "refund.rejected"):
            self.write("UPDATE orders SET refund = ? WHERE txid = ?", event["refund"]["status"],
                       event["refund"]["charge_id"])
        self.write("INSERT OR IGNORE INTO webhooks VALUES (?)", headers["webhook-id"])

    def state(self) -> str:
        """A text that changes when an order does."""
        orders = [tuple(row) for row in self.read("SELECT id, status, refunded, refund FROM orders")]
        return hashlib.sha256(str(orders).encode()).hexdigest()


def reais(centavos: int) -> str:
    return f"R$ {centavos // 100},{centavos % 100:02}"


PAGE = """<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Marketplace</title><link rel=icon href="data:,"><style>
body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem; color: #1b1b1b; background: #fff }}
table {{ border-collapse: collapse; width: 100% }} th, td {{ text-align: left; padding: .3rem .5rem .3rem 0; vertical-align: top }}
tr + tr > * {{ border-top: 1px solid #cfd4da }} input {{ font: inherit; max-width: 100% }} fieldset {{ border: 1px solid #cfd4da; margin: 1rem 0 }}
label {{ display: block; padding: .2rem 0 }} button {{ font: inherit; padding: .3rem .8rem; margin: .2rem .4rem .2rem 0 }}
input[type=number] {{ width: 4em }} code {{ font-size: 12px; overflow-wrap: anywhere }} img {{ width: 240px; max-width: 100%; display: block }}
</style></head><body><main><h1>Marketplace</h1><form method=post action="/orders"><table><tr><th scope=col>Product
<th scope=col>Seller<th scope=col>Price<th scope=col>Quantity</tr>{products}</table>
<button name=method value=pix>Pay by PIX</button>
<fieldset><legend>Card</legend><label>Number <input name=number value=4111111111111111 autocomplete=cc-number></label>
<label>Name on it <input name=holder_name value="MARIA SOUZA" autocomplete=cc-name></label>
<label>Expires <input name=expires value=12/2039 size=7 autocomplete=cc-exp></label>
<label>Code <input name=cvv value=123 size=4 autocomplete=cc-csc></label>
<button name=method value=card>Pay by card</button></fieldset></form>
<h2>Orders</h2><table><tr><th scope=col>Order<th scope=col>Total<th scope=col>State</tr>{orders}</table>
<h2>Sellers</h2><table><tr><th scope=col>Seller<th scope=col>Available<th scope=col>Pending<th scope=col>Payout</tr>{sellers}</table>
</main><script>setInterval(async () => {{ const now = await fetch("/state").then(answer => answer.text());
if (now !== "{state}") location.reload(); }}, 1000)</script>
</body></html>"""


def button(action: str, label: str) -> str:
    return f"<form method=post action=\"{action}\"><button>{label}</button></form>"


def show(shop: Shop) -> str:
    """The page. What changes while it is written is seen as a change."""
    state = shop.state()
    sellers = {str(seller.id): seller for seller in pages(list_recipients.sync, shop.client)}
    of_shop = [sellers[id] for id in shop.account.sellers]
    products = "".join(
        f"<tr><th scope=row>{name}<td>{html.escape(seller.name)}<td>{reais(price)}"
        f"<td><input type=number name=quantity min=0 max=99 value=0 aria-label=\"Quantity of {name}\"></tr>"
        for (name, price), seller in zip(PRODUCTS, of_shop))
    orders = "".join(show_order(shop, order) for order in shop.read("SELECT * FROM orders ORDER BY id DESC LIMIT 20"))
    payouts = "".join(
        f"<tr><th scope=row>{html.escape(seller.name)}<td>{reais(seller.balance.available)}"
        f"<td>{reais(seller.balance.pending)}<td>" + (button(f"/sellers/{number}/withdraw", "Withdraw")
                                                      if seller.balance.available else "") + "</tr>"
        for number, seller in enumerate(of_shop))
    return PAGE.format(state=state, products=products, orders=orders, sellers=payouts)


def show_order(shop: Shop, order: sqlite3.Row) -> str:
    state = {"CONCLUIDA": "paid", "RECUSADA": "card refused"}.get(order["status"], order["status"])
    shown = html.escape(f"{state} {order['note'] or ''}")
    if order["status"] == "pending" and order["code"]:
        image = base64.b64encode(order["image"].encode()).decode()
        shown += f"<img src=\"data:image/svg+xml;base64,{image}\" alt=\"PIX code of order {order['id']}\">"
        shown += f"<code>{html.escape(order['code'])}</code>"
        shown += button(f"/orders/{order['id']}/pay", "Pay it, as the sandbox's payer") if shop.account.is_sandbox else ""
    if order["refunded"]:
        shown += f", {reais(order['refunded'])} refunded"
    elif order["refund"]:
        shown += f", refund {order['refund']}"
    elif order["status"] == "CONCLUIDA":
        shown += button(f"/orders/{order['id']}/refund", "Refund")
    return f"<tr><th scope=row>{order['id']}<td>{reais(order['total'])}<td>{shown}</tr>"


class Handler(BaseHTTPRequestHandler):
    """Addresses of the shop."""

    shop: Shop

    def do_GET(self) -> None:
        try:
            self.show()
        except Refused as refused:
            self.answer(409, "text/plain; charset=utf-8", refused.message)

    def show(self) -> None:
        match self.path.strip("/").split("/"):
            case [""]:
                self.answer(200, "text/html; charset=utf-8", show(self.shop))
            case ["state"]:
                self.answer(200, "text/plain; charset=utf-8", self.shop.state())
            case _:
                self.answer(404, "text/plain", "There is no such page.")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/webhooks":
            return self.hear(body)
        if self.headers.get("Origin", f"http://{self.headers['Host']}") != f"http://{self.headers['Host']}":
            return self.answer(403, "text/plain", "A form of another site.")
        try:
            self.do(body)
        except Refused as refused:
            return self.answer(409, "text/plain; charset=utf-8", refused.message)
        self.answer(303, "text/plain", "", {"Location": "/"})

    def do(self, body: bytes) -> None:
        """What a form asks for."""
        match self.path.strip("/").split("/"):
            case ["orders"]:
                form = parse_qs(body.decode(), keep_blank_values=True)
                card = {name: form[name][0] for name in ("number", "holder_name", "cvv")}
                card["exp_month"], _, card["exp_year"] = form["expires"][0].partition("/")
                self.shop.order([int(text or 0) for text in form["quantity"]], form["method"][0], card)
            case ["orders", order, "pay"]:
                pay_pix_in_sandbox.sync(self.shop.read("SELECT txid FROM orders WHERE id = ?", order)[0]["txid"],
                                        client=self.shop.client)
            case ["orders", order, "refund"]:
                self.shop.refund(int(order))
            case ["sellers", seller, "withdraw"]:
                withdraw.sync(self.shop.account.sellers[int(seller)], client=self.shop.client)

    def hear(self, body: bytes) -> None:
        try:
            self.shop.hear({name.lower(): value for name, value in self.headers.items()}, body)
            self.answer(204, "text/plain", "")
        except WrongSignature:
            self.answer(400, "text/plain", "It is not signed.")

    def answer(self, status: int, kind: str, text: str, headers: dict | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    # Charges are answered while a webhook waits, and the other way round.
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("SHOP_PORT", 8090))), Handler)
    Handler.shop = Shop(sys.argv[1], server.server_port)
    print(f"Marketplace: http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
