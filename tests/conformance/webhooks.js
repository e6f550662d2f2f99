// Verifies webhooks as they came: a list of {secret, headers, body} in the file that is named. One that was changed on its way must not
// pass.
const assert = require('node:assert');
const { readFileSync } = require('node:fs');
const { Webhook, WebhookVerificationError } = require('standardwebhooks');

const deliveries = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for (const { secret, headers, body } of deliveries) {
  const webhook = new Webhook(secret);
  assert.deepStrictEqual(webhook.verify(body, headers), JSON.parse(body));
  assert.throws(() => webhook.verify(`${body} `, headers), WebhookVerificationError);
}
console.log(deliveries.length);
