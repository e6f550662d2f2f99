#!/usr/bin/env bash
# qif2ofx 0.1.0 (PyPI): a bank account's QIF (!Type:Bank) with a receipt of 80.00 on 2 November and a fee of 10.50.
# Guessed: the type of the QIF says that it is a bank account, and money in stays money in.
# Seen: every sign is turned, as for a credit card, and the OFX is a card's; 11/02/2026, which QIF writes month first, is
# 11 February, while 11/13/2026 in the same file is 13 November; DTSTART is 2019-01-01 and DTEND 2018-01-01.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check qif2ofx==0.1.0 ofxtools==1.1.1 python-dateutil==2.9.0.post0
printf '!Type:Bank\nD11/02/2026\nT80.00\nPMaria\n^\nD11/13/2026\nT-10.50\nPTarifa\n^\n' > bank.qif
seen=$(v/bin/qif2ofx --glob bank.qif --currency BRL --acctid 1 | grep -oE '<(CCSTMTRS|STMTRS|DTSTART|DTEND|DTPOSTED|TRNAMT)>[0-9.-]*' | tr -d '<' | tr '>' ' ' | cut -c1-17 | xargs)
echo "qif2ofx 0.1.0: $seen"
[ "$seen" = "CCSTMTRS DTSTART 201901011 DTEND 20180101120 DTPOSTED 20260211 TRNAMT -80.00 DTPOSTED 20261113 TRNAMT 10.50" ]
