#!/usr/bin/env bash
# standardwebhooks 1.1.0 (PyPI) beside 1.1.1 (npm): what a receiver has to catch, and the number that it gets.
# Guessed: both refuse with their one error of verification, and give the same event.
# Seen: a list of signatures with an entry that has no version is skipped by npm and a ValueError in Python; a body that
# is signed rightly and is no JSON is an error of the JSON parser in both, so `except WebhookVerificationError` alone
# lets it through to the server's 500; npm rounds an integer of 20 digits, Python keeps it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check standardwebhooks==1.1.0
npm install --silent --no-audit --no-fund standardwebhooks@1.1.1
python=$(v/bin/python -c "
import datetime
from standardwebhooks import Webhook
webhook, now = Webhook('whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw'), datetime.datetime.now(datetime.timezone.utc)
def seen(body, before=''):
    headers = {'webhook-id': 'm', 'webhook-timestamp': str(int(now.timestamp())), 'webhook-signature': before + webhook.sign('m', now, body)}
    try:
        return webhook.verify(body, headers)
    except Exception as error:
        return type(error).__name__
print(seen('{}', 'other '), seen('not json'), seen('{\"n\":12345678901234567890}')['n'])")
npm=$(node -e "
const { Webhook } = require('standardwebhooks')
const webhook = new Webhook('whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw'), now = new Date()
function seen(body, before = '') {
  const headers = { 'webhook-id': 'm', 'webhook-timestamp': String(Math.floor(now / 1000)), 'webhook-signature': before + webhook.sign('m', now, body) }
  try { return webhook.verify(body, headers) } catch (error) { return error.constructor.name }
}
console.log(JSON.stringify(seen('{}', 'other ')), seen('not json'), seen('{\"n\":12345678901234567890}').n)")
echo "PyPI 1.1.0: $python"
echo "npm 1.1.1: $npm"
[ "$python" = "ValueError JSONDecodeError 12345678901234567890" ] && [ "$npm" = "{} SyntaxError 12345678901234567000" ]
