#!/usr/bin/env bash
# pain001 0.0.74 (PyPI), CSV to ISO 20022 credit transfers (pain.001.001.03): two payments of the starter CSV that it writes
# itself, the first of 80.53 from one account on 3 November, the second of 19.99 from another account on 30 November.
# Guessed: the debtor's account and the day of execution are columns of each row, so each row is executed with its own.
# Seen: the file has one block of payments with the account and the day of the first row: 19.99 is taken from the other
# company's account, 27 days early. Count and sum are right, the schema is met, `validate` passes, exit 0.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pain001==0.0.74
v/bin/pain001 init pain.001.001.03 -o starter.csv > log
python3 -c "
import csv
rows = list(csv.DictReader(open('starter.csv')))[:2]
rows[0].update(requested_execution_date='2026-11-03', debtor_account_IBAN='DE89370400440532013000', payment_amount='80.53')
rows[1].update(requested_execution_date='2026-11-30', debtor_account_IBAN='DE75512108001245126199', payment_amount='19.99')
for row in rows: row.update(nb_of_txs='2', ctrl_sum='100.52')
writer = csv.DictWriter(open('payments.csv', 'w'), rows[0])
writer.writeheader()
writer.writerows(rows)"
v/bin/pain001 validate -t pain.001.001.03 -d payments.csv > log
v/bin/pain001 generate -t pain.001.001.03 -d payments.csv -o . > log
seen=$(python3 -c "
import xml.etree.ElementTree as tree
for block in tree.parse('pain.001.001.03.xml').iterfind('.//{*}PmtInf'):
    print(*[block.find('{*}' + path).text for path in ['NbOfTxs', 'CtrlSum', 'ReqdExctnDt', 'DbtrAcct/{*}Id/{*}IBAN']],
          *[amount.text for amount in block.iterfind('.//{*}InstdAmt')])")
echo "pain001 0.0.74: $seen"
[ "$seen" = "2 100.52 2026-11-03 DE89370400440532013000 80.53 19.99" ]
