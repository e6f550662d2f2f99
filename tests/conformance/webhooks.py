# Verifies webhooks as they came: a list of {secret, headers, body} in the file that is named. One that was changed on its way must not
# pass.
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

deliveries = json.load(open(sys.argv[1], encoding="utf-8"))
for delivery in deliveries:
    webhook = Webhook(delivery["secret"])
    assert webhook.verify(delivery["body"], delivery["headers"]) == json.loads(delivery["body"])
    try:
        webhook.verify(delivery["body"] + " ", delivery["headers"])
    except WebhookVerificationError:
        continue
    raise SystemExit("a changed body passed")
print(len(deliveries))
