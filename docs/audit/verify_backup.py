#!/usr/bin/env python3
"""Verifies a backup of Centavo without Centavo: a second program for auditors.

    verify_backup.py BACKUP [--against CHECKPOINTS] [--json]

It reads the folder that `centavo backup` writes. Python 3.9 is enough; the signatures of checkpoints
are checked where the package `cryptography` is installed. It checks

- the checksum of every frame, and that no file is missing;
- the hash chain of the blocks, their sequences and booking times, and the head, of each partition;
- that each entry balances, and that the Records of each owner are counted without gaps;
- after each Record: claims on the platform are not below zero, and equal the liabilities that mirror
  them; splits given equal splits received; fees paid equal fees earned;
- the seals of closed months: head and sums of all accounts at the end of the month;
- the checkpoints: head, booking time and sums of all accounts at their Records.

It prints the sums of all accounts. It exits with 1 at the first defect, which it names. It does not
replay the rules by which a fee was computed: `centavo verify` does that.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import sys

MAGIC = b"centavo backup\n"
FORMAT = 1

# The chart of accounts: docs/accounting.md. 6, 36, 37 and 38 exist once for each recipient.
CHART = {
    1: "Assets:Platform:Pending", 2: "Assets:Platform:Available", 3: "Assets:Platform:Reserved:Cashout",
    4: "Assets:Platform:Reserved:Dispute", 5: "Assets:Transit:Cashout", 6: "Assets:Receivable:Recipients",
    7: "Liabilities:Platform:Deficit", 8: "Income:Sales:Card", 9: "Income:Sales:Pix", 10: "Income:Sales:InitialFee",
    11: "Income:Contra:Splits", 12: "Income:Contra:Refunds", 13: "Income:Contra:Chargebacks", 14: "Income:Other",
    15: "Expenses:Fees:Mdr", 16: "Expenses:Fees:Antifraud", 17: "Expenses:Fees:Margin", 18: "Expenses:Fees:Pix",
    19: "Expenses:Fees:Cashout", 20: "Expenses:Losses:Clawback", 21: "Assets:Platform:Reserved:Withdrawal",
    22: "Assets:Transit:Withdrawal", 23: "Income:Splits:Card", 24: "Income:Splits:Pix",
    25: "Income:Contra:SplitReversals", 26: "Expenses:Fees:Anticipation", 27: "Liabilities:Clawback",
    28: "Assets:Acquirer:Receivable", 29: "Assets:Bank:Settlement", 30: "Assets:Bank:Pix",
    31: "Assets:Merchants:Deficit", 32: "Liabilities:Merchants:Pending", 33: "Liabilities:Merchants:Available",
    34: "Liabilities:Merchants:Reserved:Cashout", 35: "Liabilities:Merchants:Reserved:Dispute",
    36: "Liabilities:Recipients:Pending", 37: "Liabilities:Recipients:Available",
    38: "Liabilities:Recipients:Reserved:Withdrawal", 39: "Liabilities:Payers:Refunds", 40: "Income:Commission:Mdr",
    41: "Income:Commission:Antifraud", 42: "Income:Commission:Margin", 43: "Income:Commission:Pix",
    44: "Income:Fees:Cashout", 45: "Income:Fees:Anticipation", 46: "Expenses:Acquirer:Mdr",
    47: "Expenses:Losses:Other", 48: "Equity:Capital", 49: "Assets:Bank:Own", 50: "Liabilities:Suspense",
    51: "Expenses:Bank:Fees", 52: "Expenses:Acquirer:Fees",
}
OF_RECIPIENTS = {6, 36, 37, 38}
CLAIMS = {1, 2, 3, 4, 21}
SPLITS = {11, 23, 24, 25}
FEES = {15, 16, 17, 18, 19, 26, 40, 41, 42, 43, 44, 45}
# Account of a merchant or recipient, and the account of the platform that mirrors it.
OF_MERCHANT = {1: 32, 2: 33, 3: 34, 4: 35, 7: 31}
OF_RECIPIENT = {1: 36, 2: 37, 21: 38}
MERCHANT, PLATFORM = 0, 1  # a ledger within its group; recipient n is n + 1
PERIOD_CLOSED = 49  # the event that seals a month
SAO_PAULO = datetime.timedelta(hours=-3)
EPOCH = datetime.datetime(1970, 1, 1)


class Defect(Exception):
    """What is wrong, and where."""


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def number(data, signed=False):
    return int.from_bytes(data, "big", signed=signed)


def frames(path):
    """The frames of a file: kind and payload."""
    data = path.read_bytes()
    at = len(MAGIC) + 1
    if not data.startswith(MAGIC) or number(data[at - 1:at]) != FORMAT:
        raise Defect(f"{path.name}: not a file of a backup of format {FORMAT}")
    while at < len(data):
        end = at + 5 + number(data[at + 1:at + 5])
        if end + 4 > len(data) or crc32c(data[at:end]) != number(data[end:end + 4]):
            raise Defect(f"{path.name}: a damaged frame at byte {at}")
        yield chr(data[at]), data[at + 5:end]
        at = end + 4


def month(booked_at):
    """The month in Sao Paulo, counted from January 1970."""
    day = EPOCH + datetime.timedelta(milliseconds=booked_at) + SAO_PAULO
    return (day.year - 1970) * 12 + day.month - 1


class Cbor:
    """Reader of the CBOR (RFC 8949) that Records use."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        part = self.data[self.at:self.at + count]
        if len(part) < count:
            raise Defect("a Record ends too early")
        self.at += count
        return part

    def item(self):
        first = self.take(1)[0]
        major, short = first >> 5, first & 31
        if short > 27:
            raise Defect("a Record with an item of unknown length")
        value = short if short < 24 else number(self.take(1 << (short - 24)))
        if major == 0:
            return value
        if major == 1:
            return -1 - value
        if major in (2, 3):
            return self.take(value)
        if major == 4:
            return [self.item() for _ in range(value)]
        if major == 7 and first in (0xF4, 0xF5, 0xF6):
            return {0xF4: False, 0xF5: True, 0xF6: None}[first]
        raise Defect(f"a Record with an item of an unknown kind ({first:#x})")


class Books:
    """Balances of all ledgers, and what must hold after each Record."""

    def __init__(self):
        self.balances, self.ordinals, self.clearing, self.sums = {}, {}, {}, {}
        self.debits = self.credits = 0

    def post(self, record):
        if record[:1] != b"\x01":
            raise Defect("a Record of another format than 1")
        group, recipient, ordinal, _effective_at, events, entries = Cbor(record[1:]).item()[:6]
        owner = (group, recipient)
        if ordinal != self.ordinals.get(owner, 0) + 1:
            raise Defect(f"Record {ordinal} of owner {owner}, after {self.ordinals.get(owner, 0)}")
        self.ordinals[owner] = ordinal
        touched = [line for entry in entries for line in self.entry(group, entry)]
        for ledger, account in touched:
            self.check(group, ledger, account)
        if any(self.clearing.get(group, [0, 0])):
            raise Defect(f"splits and fees of group {group} do not cancel out: {self.clearing[group]}")
        return events

    def entry(self, group, items):
        ledger, at, sums = items[0], 1, [0, 0]
        while at < len(items):
            code, is_credit = divmod(items[at], 2)
            if code not in CHART:
                raise Defect(f"an account with the unknown code {code}")
            account, at = ((code, items[at + 1]), at + 2) if code in OF_RECIPIENTS else ((code, 0), at + 1)
            amount, at = items[at], at + 1
            if amount <= 0:
                raise Defect("a posting of zero or less")
            sums[is_credit] += amount
            signed = -amount if is_credit else amount
            key = (group, ledger, account)
            self.balances[key] = self.balances.get(key, 0) + signed
            of_kind = self.sums.setdefault(code, [0, 0])
            of_kind[is_credit] += amount
            clearing = self.clearing.setdefault(group, [0, 0])
            clearing[0] += signed if code in SPLITS else 0
            clearing[1] += signed if code in FEES else 0
            yield ledger, account
        if sums[0] != sums[1]:
            raise Defect(f"an entry with debits of {sums[0]} and credits of {sums[1]}")
        self.debits, self.credits = self.debits + sums[0], self.credits + sums[1]

    def balance(self, group, ledger, account):
        return self.balances.get((group, ledger, account), 0)

    def check(self, group, ledger, account):
        if group == 0:
            return  # the house has no claims
        code, recipient = account
        held = self.balance(group, ledger, account)
        if code in CLAIMS and held < 0:
            raise Defect(f"{CHART[code]} of ledger {ledger} of group {group} stands at {held}")
        for ours, theirs in self.mirrors(ledger, code, recipient):
            total = self.balance(group, *ours) + self.balance(group, *theirs)
            if total:
                raise Defect(f"{CHART[ours[1][0]]} of group {group} and its mirror differ by {total}")

    def mirrors(self, ledger, code, recipient):
        """The pair of accounts that mirror each other, if this is one of a pair."""
        if ledger == MERCHANT and code in OF_MERCHANT:
            yield (ledger, (code, 0)), (PLATFORM, (OF_MERCHANT[code], 0))
        if ledger == MERCHANT and code == 6:
            yield (ledger, (6, recipient)), (recipient + 1, (27, 0))
        if ledger > PLATFORM and code in OF_RECIPIENT:
            yield (ledger, (code, 0)), (PLATFORM, (OF_RECIPIENT[code], ledger - 1))
        if ledger > PLATFORM and code == 27:
            yield (ledger, (27, 0)), (MERCHANT, (6, ledger - 1))
        if ledger == PLATFORM:
            for claim, mirror in OF_MERCHANT.items():
                if mirror == code:
                    yield (MERCHANT, (claim, 0)), (ledger, (code, 0))
            for claim, mirror in OF_RECIPIENT.items():
                if mirror == code:
                    yield (recipient + 1, (claim, 0)), (ledger, (code, recipient))

    def digest(self):
        lines = (f"{code} {debits} {credits}\n" for code, (debits, credits) in sorted(self.sums.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


class Journal:
    """The chain of blocks of a partition so far."""

    def __init__(self, partition, checkpoints):
        self.partition = partition
        self.next, self.hash, self.booked_at, self.blocks = 1, bytes(32), None, 0
        self.seals, self.month_ends = 0, [(-1, 0, bytes(32), Books().digest())]
        self.books, self.ahead = Books(), sorted(checkpoints, key=lambda one: one["sequence"])

    def block(self, payload):
        partition, first, booked_at = payload[:2], number(payload[2:10]), number(payload[10:18], signed=True)
        previous, count, at = payload[18:50], number(payload[50:54]), 54
        if first != self.next or previous != self.hash:
            raise Defect(f"the block of Record {first} does not follow Record {self.next - 1}")
        if self.booked_at is not None and booked_at < self.booked_at:
            raise Defect(f"the block of Record {first} is booked before the one that it follows")
        if self.booked_at is not None and month(booked_at) != month(self.booked_at):
            self.month_ends.append((month(self.booked_at), first - 1, previous, self.books.digest()))
        digest = hashlib.sha256(b"\x01" + partition + payload[2:10] + payload[10:18] + previous)
        digest.update(count.to_bytes(8, "big"))
        for sequence in range(first, first + count):
            length = number(payload[at:at + 4])
            record, at = payload[at + 4:at + 4 + length], at + 4 + length
            digest.update(length.to_bytes(8, "big") + record)
            try:
                self.seal(self.books.post(record))
            except (Defect, IndexError, TypeError, ValueError) as defect:
                raise Defect(f"Record {sequence}: {defect}") from defect
        if at != len(payload):
            raise Defect(f"the block of Record {first} has {len(payload) - at} bytes too many")
        self.next, self.hash, self.booked_at = first + count, digest.digest(), booked_at
        self.blocks += 1
        self.compare()

    def seal(self, events):
        """Compares the seals of the months that a Record closes."""
        for number_of_month, (through, head, totals) in (fields for kind, fields in events if kind == PERIOD_CLOSED):
            *_, (_, *ours) = (end for end in self.month_ends if end[0] <= number_of_month)
            for name, told, found in zip(("Record", "head", "totals"), (through, head.hex(), totals.hex()),
                                         (ours[0], ours[1].hex(), ours[2])):
                if told != found:
                    when = f"{1970 + number_of_month // 12}-{number_of_month % 12 + 1:02}"
                    raise Defect(f"the seal of {when} tells another {name}: {told}, not {found}")
            self.seals += 1

    def end(self, head):
        found = (number(head[:8]), head[8:40])
        if found != (self.next, self.hash):
            raise Defect(f"the end names Record {found[0] - 1}, and the blocks end with {self.next - 1}")

    def compare(self):
        while self.ahead and self.ahead[0]["sequence"] < self.next:
            told = self.ahead.pop(0)
            ours = {"partition": self.partition, "sequence": self.next - 1, "booked_at_ms": self.booked_at,
                    "head": self.hash.hex(), "totals": self.books.digest()}
            for name, value in ours.items():
                if told[name] != value:
                    at = told["sequence"]
                    raise Defect(f"the checkpoint at Record {at} tells another {name}: {told[name]}, not {value}")


HEAD = 48  # bytes of an end for each partition


class Journals:
    """The journals of all partitions."""

    def __init__(self, checkpoints):
        self.all, self.checkpoints = {}, checkpoints
        for partition in {0} | {one["partition"] for one in checkpoints}:
            self.of(partition)

    def of(self, partition):
        if partition not in self.all:
            told = [one for one in self.checkpoints if one["partition"] == partition]
            self.all[partition] = Journal(partition, told)
        return self.all[partition]

    def judge(self, partition, check, payload):
        try:
            check(payload)
        except Defect as defect:
            raise Defect(f"partition {partition}: {defect}" if partition else str(defect)) from defect

    def block(self, payload):
        partition = number(payload[:2])
        self.judge(partition, self.of(partition).block, payload)

    def end(self, payload):
        """An end names the head of each partition, from 0 on; one that it does not name has no blocks."""
        if not payload or len(payload) % HEAD:
            raise Defect("an end of a wrong length")
        heads = {at // HEAD: payload[at:at + HEAD] for at in range(0, len(payload), HEAD)}
        nothing = (1).to_bytes(8, "big") + bytes(32)
        for partition in sorted(set(heads) | set(self.all)):
            self.judge(partition, self.of(partition).end, heads.get(partition, nothing))

    def head(self):
        """Hash of everything: the one of partition 0 alone, or the SHA-256 of those of all partitions in order."""
        heads = [self.of(partition).hash for partition in range(max(self.all) + 1)]
        return heads[0] if len(heads) == 1 else hashlib.sha256(b"".join(heads)).digest()

    def sum(self, count):
        return sum(count(journal) for journal in self.all.values())

    def accounts(self):
        """Debits and credits of all accounts by code, over all partitions."""
        sums = {}
        for journal in self.all.values():
            for code, (debits, credits) in journal.books.sums.items():
                before = sums.get(code, (0, 0))
                sums[code] = (before[0] + debits, before[1] + credits)
        return sums


def read_checkpoints(path):
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    decoder, text, checkpoints = json.JSONDecoder(), "".join(file.read_text() for file in files), []
    while text := text.lstrip():
        checkpoint, end = decoder.raw_decode(text)
        check_signature(checkpoint)
        checkpoints.append(checkpoint)
        text = text[end:]
    told = {hashlib.sha256(signed_text(one).encode()).hexdigest() for one in checkpoints}
    for partition in {one["partition"] for one in checkpoints}:
        chained = [one for one in checkpoints if "previous" in one and one["partition"] == partition]
        for one in sorted(chained, key=lambda one: one["sequence"])[1:]:
            if one["previous"] not in told:
                raise Defect(f"the checkpoint that the one at Record {one['sequence']} follows is missing")
    if len({checkpoint["public_key"] for checkpoint in checkpoints}) > 1:
        raise Defect("the checkpoints are signed with several keys")
    return checkpoints


def signed_text(checkpoint):
    names = ("partition", "sequence", "booked_at_ms", "head", "totals")
    follows = "previous" in checkpoint
    names += ("previous",) * follows
    return f"centavo checkpoint {1 + follows}\n" + "".join(f"{name} {checkpoint[name]}\n" for name in names)


def check_signature(checkpoint):
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        print("signatures are not checked: the package cryptography is missing", file=sys.stderr)
        return
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checkpoint["public_key"]))
        key.verify(bytes.fromhex(checkpoint["signature"]), signed_text(checkpoint).encode())
    except InvalidSignature:
        raise Defect(f"the checkpoint at Record {checkpoint['sequence']} has a wrong signature") from None


def verify(folder, checkpoints):
    journals = Journals(checkpoints)
    for path in sorted(folder.glob("*.blocks")):
        for kind, payload in frames(path):
            {"b": journals.block, "e": journals.end}[kind](payload)
    *_, (kind, payload) = frames(folder / "keys")
    if kind != "e":
        raise Defect("keys: it has no end")
    journals.end(payload)
    for journal in journals.all.values():
        if journal.ahead:
            raise Defect(f"the backup ends before the checkpoint at Record {journal.ahead[0]['sequence']}")
    return journals


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("backup", type=pathlib.Path)
    arguments.add_argument("--against", type=pathlib.Path, metavar="CHECKPOINTS")
    arguments.add_argument("--json", action="store_true", help="print JSON")
    given = arguments.parse_args()
    try:
        checkpoints = read_checkpoints(given.against) if given.against else []
        journals = verify(given.backup, checkpoints)
    except (Defect, OSError, KeyError, ValueError) as defect:
        sys.exit(f"verify_backup: {defect}")
    sums = {CHART[code]: sums for code, sums in sorted(journals.accounts().items())}
    found = {"records": journals.sum(lambda one: one.next - 1), "blocks": journals.sum(lambda one: one.blocks),
             "partitions": len(journals.all), "head": journals.head().hex(),
             "debits": journals.sum(lambda one: one.books.debits),
             "credits": journals.sum(lambda one: one.books.credits),
             "checkpoints": len(checkpoints), "seals": journals.sum(lambda one: one.seals), "accounts": sums}
    if given.json:
        print(json.dumps(found))
        return
    print(f"{found['records']} Records in {found['blocks']} blocks, head {found['head']}")
    for name, (debits, credits) in sums.items():
        print(f"  {name:45}{debits / 100:18.2f}{credits / 100:18.2f}{(debits - credits) / 100:18.2f}")
    print(f"{found['checkpoints']} checkpoints agree")


if __name__ == "__main__":
    main()
