#!/usr/bin/env bash
# ofx2qif 0.10.9 (Debian 12, package ofx), read by quiffen 4.0.1 and by ofxstatement-qif 0.14.0 with ofxstatement 0.9.3
# (PyPI): an account's OFX with 80.53 of 3 November, -10.50 of 30 November and 19.99 of 12 November.
# Guessed: a day in QIF is month first for both, and a converter writes the lines that it was given.
# Seen: ofx2qif writes the day first; quiffen reads the month first where it can: the money of the 3rd is of 11 March and
# that of the 12th of 11 December, while the 30th is right. ofxstatement-qif looks for an account "Quiffen Default
# Account", and the QIF names its own: the OFX that it writes has no line, exit 0.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
apt-get download -qq ofx=1:0.10.9-1 libofx7=1:0.10.9-1 libosp5=1.5.2-13+b2 > /dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
libraries=$(find "$work/usr/lib" -maxdepth 1 -type d -name '*-linux-gnu'):$work/usr/lib
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check quiffen==4.0.1 ofxstatement-qif==0.14.0 ofxstatement==0.9.3
cat > bank.ofx <<'OFX'
OFXHEADER:100
DATA:OFXSGML
VERSION:102
SECURITY:NONE
ENCODING:USASCII
CHARSET:1252
COMPRESSION:NONE
OLDFILEUID:NONE
NEWFILEUID:NONE

<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS><DTSERVER>20261130<LANGUAGE>POR</SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><TRNUID>1<STATUS><CODE>0<SEVERITY>INFO</STATUS><STMTRS><CURDEF>BRL
<BANKACCTFROM><BANKID>341<ACCTID>12345<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST><DTSTART>20261101<DTEND>20261130
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261103<TRNAMT>80.53<FITID>1<NAME>Maria</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20261130<TRNAMT>-10.50<FITID>2<NAME>Tarifa</STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261112<TRNAMT>19.99<FITID>3<NAME>Ana</STMTTRN>
</BANKTRANLIST><LEDGERBAL><BALAMT>90.02<DTASOF>20261130</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
OFX
OFX_DTD_PATH=$work/usr/share/libofx7/libofx/dtd LD_LIBRARY_PATH=$libraries usr/bin/ofx2qif bank.ofx > bank.qif
seen=$(grep '^D[0-9]' bank.qif | xargs
v/bin/python -c "
from quiffen import Qif
for account in Qif.parse('bank.qif').accounts.values():
    print(*[f'{t.date:%Y-%m-%d} {t.amount}' for transactions in account.transactions.values() for t in transactions], sep=', ')"
v/bin/ofxstatement convert -t qif bank.qif out.ofx 2>&1
grep -c STMTTRN out.ofx || true)
echo "ofx2qif 0.10.9, quiffen 4.0.1, ofxstatement-qif 0.14.0: $seen"
[ "$seen" = "D3/11/2026 D30/11/2026 D12/11/2026
2026-03-11 80.53, 2026-11-30 -10.50, 2026-12-11 19.99
INFO: Conversion completed: (0 lines, 0 invest-lines) bank.qif
0" ]
