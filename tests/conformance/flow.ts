// A marketplace's first hour, with the clients that hey-api made of both descriptions.
import * as api from "./client";
import { client } from "./client/client.gen";
import { Receiver, check, merchant, order, payer, registration, run } from "./hour";
import * as operations from "./operations";
import { client as operator } from "./operations/client.gen";

const { CENTAVO_URL: API, CENTAVO_OPS_URL: OPS, CENTAVO_OPS_TOKEN: OPS_TOKEN } = process.env as Record<string, string>;
operator.setConfig({ baseUrl: OPS!, auth: OPS_TOKEN! });
client.setConfig({ baseUrl: API! });

run(async () => {
  const receiver = new Receiver<api.ChargeWebhook | api.RefundWebhook | api.RecipientWebhook>();
  const opened = await operations.createMerchant({ body: merchant });
  check(opened.data, opened.error);
  const body = { webhook_url: await receiver.url() };
  const key = await operations.createApiKey({ path: { id: opened.data.id }, body });
  check(key.data?.api_key && key.data.webhook_secret, key.error);
  receiver.secret = key.data.webhook_secret;
  client.setConfig({ auth: key.data.api_key });

  const recipient = await api.registerRecipient({ body: registration });
  check(recipient.data, recipient.error);
  const id = recipient.data.id;
  const approved = await operations.approveRecipient({ path: { id } });
  check(approved.data?.status === "active", approved.error);
  check((await receiver.hears("recipient.approved")).recipient.id === id, "the webhook is about the recipient");

  const headers = { "Idempotency-Key": "order-1" };
  const first = await api.chargeCard({ body: order(id), headers });
  const again = await api.chargeCard({ body: order(id), headers });
  check(first.data, first.error);
  const txid = first.data.txid;
  check(again.data?.txid === txid, "a retry with its key makes no second charge");
  check(again.response?.headers.get("Idempotent-Replayed") === "true", "the retry says that it is one");
  const declined = await api.chargeCard({ body: order(id, "4000000000000002") });
  check(declined.error && "code" in declined.error && declined.error.code === "card_declined", "a typed refusal");
  check((await receiver.hears("charge.paid")).charge.txid === txid, "the webhook is about the charge");

  const pix = await api.createOrLookUpPix({ body: payer });
  check(pix.data && "txid" in pix.data, pix.error);
  const paid = await api.payPixInSandbox({ path: { txid: pix.data.txid } });
  check(paid.data?.status === "CONCLUIDA", paid.error);

  const refund = await api.requestRefund({ body: { payment_id: txid, amount: 1_000 } });
  check(refund.data?.status === "pending", refund.error);
  const decided = await operations.approveRefund({ path: { id: refund.data.id } });
  check(decided.data, decided.error);
  check((await receiver.hears("refund.approved")).refund.charge_id === txid, "the webhook is about the refund");

  const found = new Set<string | undefined>();
  for (let page = 1, last = 1; page <= last; page++) {
    const listed = await api.listCharges({ query: { page, per_page: 1 } });
    check(listed.data, listed.error);
    last = listed.data.pages;
    for (const charge of listed.data.items) found.add(charge.txid);
  }
  check(found.size === 3, `${found.size} charges in all pages`);
  receiver.close();
});
