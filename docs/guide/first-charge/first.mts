import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { Refused, call, pages, verified } from "./centavo.mjs";

const paid = new Set<string>(); // the charges whose webhook has come
const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  try {
    const event = verified(request.headers, body, process.env.WEBHOOK_SECRET!);
    response.end();
    if (event.event === "charge.paid") paid.add(event.charge.txid);
  } catch {
    response.writeHead(400).end();
  }
});
server.listen(Number(process.env.WEBHOOK_PORT ?? 8090), "127.0.0.1");

const card = { number: "4111111111111111", holder_name: "MARIA SOUZA", exp_month: 12, exp_year: 2039, cvv: "123" };
const order = {
  amount: 10_000,
  customer: { name: "Maria Souza", email: "maria@example.com", document: "12345678909" },
  credit_card: card,
  splits: [{ sub_recipient_id: process.env.RECIPIENT, amount: 3_500 }],
};
const key = randomUUID(); // a new order each time
const charge = await call("POST", "/api/card", order, key);
const again = await call("POST", "/api/card", order, key);
if (again.txid !== charge.txid) throw new Error("a retry makes no second charge");
await call("POST", "/api/card", { ...order, credit_card: { ...card, number: "4000000000000002" } }, `${key}-2`)
  .catch((refused: Refused) => console.log("refused:", refused.problem.code));
let count = 0;
for await (const _ of pages("/api/charges")) count++;
console.log(charge.txid, charge.status, count, "charges");

for (let left = 600; !paid.has(charge.txid); left--) {
  if (!left) throw new Error("no webhook in a minute: GET /api/events tells what was tried");
  await new Promise((done) => setTimeout(done, 100));
}
console.log("webhook: charge.paid");
process.exit(0);
