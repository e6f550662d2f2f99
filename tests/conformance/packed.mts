// Charges, lists, and verifies a webhook with the packed client.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { Centavo, Declined, Refused, WrongSignature, verified, type WebhookEvent } from "centavo";

const { CENTAVO_URL, CENTAVO_API_KEY, WEBHOOK_SECRET, WEBHOOK_PORT } = process.env as Record<string, string>;
const centavo = new Centavo(CENTAVO_URL!, CENTAVO_API_KEY!);

function check(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

const heard: WebhookEvent[] = [];
const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  heard.push(verified(request.headers, body, WEBHOOK_SECRET!));
  for (const [headers, text] of [[request.headers, `${body} `], [{}, body]] as const) {
    try {
      verified(headers, text, WEBHOOK_SECRET!);
      check(false, "a changed webhook is verified");
    } catch (error) {
      check(error instanceof WrongSignature, String(error));
    }
  }
  response.end();
});
server.listen(Number(WEBHOOK_PORT), "127.0.0.1");

const order = (number: string) => ({
  amount: 10_000,
  customer: { name: "Maria Souza", email: "maria@example.com", document: "12345678909" },
  credit_card: { number, holder_name: "MARIA SOUZA", exp_month: 12, exp_year: 2039, cvv: "123" },
});
const body = order("4111111111111111");
const [first, again] = [
  await centavo.call("post", "/api/card", { body, key: "packed-ts" }),
  await centavo.call("post", "/api/card", { body, key: "packed-ts" }),
];
check(first.txid === again.txid, "a retry with its key makes no second charge");
// @ts-expect-error: a charge without a card does not compile
const withoutCard = () => centavo.call("post", "/api/card", { body: { amount: 1, customer: body.customer } });
// @ts-expect-error: nor does a batch that has one
const inBatch = () => centavo.call("post", "/api/charges/batch", { body: [{ amount: 1, idempotency_key: "1" }] });
// @ts-expect-error: nor does a charge with two cards
const twoCards = () => centavo.call("post", "/api/card", { body: { ...body, card: body.credit_card } });
const recipient = { sub_recipient_id: randomUUID() };
// @ts-expect-error: nor does a split without a share
const noShare = () => centavo.call("post", "/api/card", { body: { ...body, splits: [recipient] } });
const twoShares = { ...recipient, amount: 1, percent: "1" };
// @ts-expect-error: nor does one with two
const split = () => centavo.call("post", "/api/card", { body: { ...body, splits: [twoShares] } });
const shared = () => centavo.call("post", "/api/card", { body: { ...body, splits: [{ ...recipient, percent: "1" }] } });
const other = await centavo.call("post", "/api/card", { body });
const refused = await centavo.call("post", "/api/card", { body: order("4000000000000002") }).catch((error) => error);
check(refused instanceof Declined && refused.code === "card_declined", String(refused));
const path = { txid: first.txid };
const conflict = await centavo.call("get", "/api/charges/{txid}/qr.svg", { path }).catch((error) => error);
check(conflict instanceof Refused && conflict.code === "charge_not_pending", String(conflict));
const listed: string[] = [];
for await (const charge of centavo.pages("/api/charges", { status: "CONCLUIDA" })) listed.push(charge.txid);
check([first.txid, other.txid].every((txid) => listed.includes(txid)) && !listed.includes(refused.txid), "the list");
const payer = { nome: "Maria Souza", cpf: "12345678909" };
const pix = await centavo.call("post", "/api/pix", { body: { ...payer, valor: "8.00", metadata: { shop: "ts" } } });
const ofShop: string[] = [];
for await (const charge of centavo.pages("/api/charges", { metadata: { shop: "ts" } })) ofShop.push(charge.txid);
check(ofShop.join() === pix.txid, "the charges of a shop");
const plan = { tag: "packed-ts", amount: 100, billingCycle: "ANNUAL", totalBillingCycles: 1 } as const;
await centavo.call("post", "/api/recurrency/plans", { body: plan });
const tags: string[] = [];
for await (const plan of centavo.pages("/api/recurrency/plans")) tags.push(plan.tag);
check(tags.includes("packed-ts"), "the list of plans");
for await (const event of centavo.pages("/api/events")) {
  for await (const one of centavo.pages("/api/events/{id}/tries", {}, { id: event.id })) check(one.at, "a try");
}
const isHeard = () => heard.some((event) => event.event === "charge.paid" && event.charge.txid === first.txid);
for (let left = 600; !isHeard(); left--) {
  check(left, "no webhook came");
  await new Promise((done) => setTimeout(done, 100));
}
console.log("the packed client has charged, listed and verified");
process.exit(0);
