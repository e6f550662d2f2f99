// A marketplace's first hour, with the client that hey-api made of the description. The account is opened by the test.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";
import * as api from "./client";
import { client } from "./client/client.gen";

const { API, API_KEY, WEBHOOK_SECRET, WEBHOOK_PORT, RECIPIENT } = process.env as Record<string, string>;
client.setConfig({ baseUrl: API!, auth: API_KEY! });

type Told = api.ChargeWebhook | api.RefundWebhook;
const heard: Told[] = [];
const receiver = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  heard.push(new Webhook(WEBHOOK_SECRET!).verify(body, request.headers as Record<string, string>) as Told);
  response.end();
}).listen(Number(WEBHOOK_PORT), "127.0.0.1");

function check(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

async function paid(): Promise<api.ChargeWebhook> {
  for (let tries = 0; tries < 600; tries++) {
    const told = heard.find((one): one is api.ChargeWebhook => one.event === "charge.paid");
    if (told) return told;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("no webhook came");
}

const order = (number: string): api.CardChargeRequest => ({
  amount: 10_000,
  customer: { name: "Maria Souza", email: "maria@example.com", document: "12345678909" },
  credit_card: { number, holder_name: "MARIA SOUZA", exp_month: 12, exp_year: 2039, cvv: "123" },
  splits: [{ sub_recipient_id: RECIPIENT!, amount: 3_500 }],
});

async function flow(): Promise<void> {
  const headers = { "Idempotency-Key": "order-1" };
  const first = await api.chargeCard({ body: order("4111111111111111"), headers });
  const again = await api.chargeCard({ body: order("4111111111111111"), headers });
  check(first.data, JSON.stringify(first.error));
  check(again.data?.txid === first.data.txid, "a retry with its key makes no second charge");
  check(again.response?.headers.get("Idempotent-Replayed") === "true", "the retry says that it is one");
  const declined = await api.chargeCard({ body: order("4000000000000002") });
  check(declined.error && "code" in declined.error && declined.error.code === "card_declined", "a typed refusal");
  check((await paid()).charge.txid === first.data.txid, "the webhook is about the charge");
  const pix = await api.createOrLookUpPix({ body: { valor: "25.90", nome: "Maria Souza", cpf: "12345678909" } });
  check(pix.data && "txid" in pix.data, JSON.stringify(pix.error));
  const refund = await api.requestRefund({ body: { payment_id: first.data.txid, amount: 1_000 } });
  check(refund.data?.status === "pending", JSON.stringify(refund.error));
  const found = new Set<string | undefined>();
  for (let page = 1, last = 1; page <= last; page++) {
    const listed = await api.listCharges({ query: { page, per_page: 1 } });
    check(listed.data, JSON.stringify(listed.error));
    last = listed.data.pages;
    for (const charge of listed.data.items) found.add(charge.txid);
  }
  check(found.size === 3, `${found.size} charges in all pages`);
  console.log("the flow of a marketplace went through");
  receiver.close();
  receiver.closeAllConnections();
}

flow().catch((error) => {
  console.error(error);
  process.exit(1);
});
