#!/usr/bin/env bash
# schwifty 2026.10.1 (PyPI) beside ibantools 4.5.4 and iban 0.0.14 (npm): Brazilian IBANs.
# Guessed: an IBAN that one of them makes is valid for the others, and a bank's 3-digit code is refused or mapped.
# Seen: schwifty pads the code 341 to the 8 digits of an ISPB, which names no bank, fills the account type and the
# owner with 0, and calls the result valid. The registry asks for a letter as the type: both others refuse it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check schwifty==2026.10.1
npm install --silent --no-audit --no-fund ibantools@4.5.4 iban@0.0.14
made=$(v/bin/python -c "
from schwifty import IBAN
made = IBAN.generate('BR', bank_code='341', branch_code='1234', account_code='1234567')
print(made, made.bank_code, made.is_valid, made.bank)")
echo "schwifty 2026.10.1: $made"
judged=$(IBAN=${made%% *} node -e "
const iban = process.env.IBAN
console.log(require('ibantools').isValidIBAN(iban), require('iban').isValid(iban))")
echo "ibantools 4.5.4, iban 0.0.14: $judged"
[ "$made" = "BR950000034101234000123456700 00000341 True None" ] && [ "$judged" = "false false" ]
