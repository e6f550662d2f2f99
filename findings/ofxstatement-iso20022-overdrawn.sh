#!/usr/bin/env bash
# ofxstatement-iso20022 0.8.1 with ofxstatement 0.9.3 (PyPI): three right camt.053 statements, converted to OFX.
# Guessed: an account that is overdrawn in the morning and one with a pending entry are converted like any other.
# Seen: whether a balance is a debit is not read, so -100.00 + 150.00 = 50.00 is "100.00 plus 150.00 should be equal to
# 50.00", and nothing is written; a pending entry (PDNG) is added up with the booked ones, so that statement is refused too.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check ofxstatement-iso20022==0.8.1 ofxstatement==0.9.3
# Writes a statement: sign and amount of the opening balance, the closing balance, status of a second entry of 9.00.
write() {
  local day='<Dt>2026-11-03</Dt>' entry=''
  [ -z "$4" ] || entry="<Ntry><Amt Ccy=\"BRL\">9.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>$4</Sts><BookgDt>$day</BookgDt><ValDt>$day</ValDt></Ntry>"
  cat > statement.xml << XML
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt><Id>S</Id>
<Acct><Id><IBAN>BR1500000000000010932840814P2</IBAN></Id><Ccy>BRL</Ccy></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="BRL">$2</Amt><CdtDbtInd>$1</CdtDbtInd><Dt>$day</Dt></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="BRL">$3</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt>$day</Dt></Bal>
<Ntry><Amt Ccy="BRL">150.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt>$day</BookgDt><ValDt>$day</ValDt></Ntry>
$entry</Stmt></BkToCstmrStmt></Document>
XML
  if v/bin/ofxstatement convert -t iso20022 statement.xml statement.ofx > log 2>&1; then echo written; else
    grep -o 'Start balance.*' log
  fi
}
seen=$(write CRDT 100.00 250.00 ''; write DBIT 100.00 50.00 ''; write CRDT 100.00 250.00 PDNG)
echo "ofxstatement-iso20022 0.8.1: $seen"
[ "$seen" = "written
Start balance (100.00) plus the total amount (150.00) should be equal to the end balance (50.00)
Start balance (100.00) plus the total amount (159.00) should be equal to the end balance (250.00)" ]
