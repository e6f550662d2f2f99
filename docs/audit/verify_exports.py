#!/usr/bin/env python3
"""Verifies the exports of a folder by their manifests, without Centavo: a program for auditors.

    verify_exports.py FOLDER [--through DAY] [--last SHA256 ...] [--signed JOB ... --key HEX]

It reads the folder into which `centavo export` writes, month after month. Python 3.9 is enough. It checks

- that each file of each manifest is there, with its length and its SHA-256;
- in each manifest, that closing = opening + debits - credits for each account, and the sums of all accounts;
- that the manifests of one ledger and format are a chain: each is of the days after the one before, names it by its
  SHA-256, begins with its closing balances and does not go back in the journal;
- with `--through`, that the last manifest of each chain ends with this day (YYYY-MM-DD) and was made when the day was
  over, so that no last month and no last days are left out;
- with `--last`, that the last manifest of each chain has one of these SHA-256, which were kept elsewhere.

- with `--signed`, that each manifest was signed with the key (`public_key` of a checkpoint, hexadecimal) by one of
  these jobs: the answers of `GET /ops/exports/{id}` as files. It needs the Python package cryptography.

It exits with 1 at the first defect, which it names. Whether manifests without a signature are genuine, a checkpoint of
the journal says (verify_backup.py).
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import sys

SUFFIX = ".manifest.json"


class Defect(Exception):
    """What is wrong, and where."""


def sha256(path):
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def check(folder, name, manifest):
    """One manifest, and its files."""
    for file in manifest["files"]:
        path = folder / file["path"]
        if not path.is_file():
            raise Defect(f"{name}: {file['path']} is missing")
        if path.stat().st_size != file["bytes"] or sha256(path) != file["sha256"]:
            raise Defect(f"{name}: {file['path']} is another file")
    sums = {"debits": 0, "credits": 0}
    for of in manifest["accounts"]:
        if of["closing"] != of["opening"] + of["debits"] - of["credits"]:
            raise Defect(f"{name}: the balances of {of['account']} of {of['ledger']} do not add up")
        for side in sums:
            sums[side] += of[side]
    for side, total in sums.items():
        if total != manifest[side]:
            raise Defect(f"{name}: the {side} of its accounts sum to {total}, not to {manifest[side]}")


def signed_by(jobs, key):
    """The SHA-256 of the manifests that these jobs signed."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise Defect("signatures need the package cryptography") from None
    public, digests = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)), set()
    for path in jobs:
        of = json.loads(path.read_text()).get("manifest")
        if not of:
            raise Defect(f"{path.name}: it signs no manifest; only exports that are done do, and no reports")
        try:
            public.verify(bytes.fromhex(of["signature"]), f"centavo manifest 1\n{of['sha256']}\n".encode())
        except InvalidSignature:
            raise Defect(f"{path.name}: its signature is not of this key") from None
        digests.add(of["sha256"])
    return digests


def balances(manifest, which):
    of_accounts = {(of["ledger"], of["account"]): of[which] for of in manifest["accounts"]}
    return {account: balance for account, balance in of_accounts.items() if balance}


def follow(before, after):
    """One manifest and the next of its chain, each with its name."""
    (former, earlier), (name, later) = before, after
    ended = earlier["request"]["to"]
    next_day = ended and str(datetime.date.fromisoformat(ended) + datetime.timedelta(days=1))
    if later["request"]["from"] != next_day:
        raise Defect(f"{name}: it begins on {later['request']['from']}, and the one before it ends on {ended}")
    if (later["previous"] or {}).get("sha256") != sha256(former):
        raise Defect(f"{name}: it does not follow {former.name} as it is now")
    if balances(earlier, "closing") != balances(later, "opening"):
        raise Defect(f"{name}: its opening balances are not the closing balances of {former.name}")
    if any(later["cut"].get(partition, 0) < cut for partition, cut in earlier["cut"].items()):
        raise Defect(f"{name}: its cut lies before that of {former.name}")


def verify(folder, through, last=(), signed=None):
    chains = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        manifest = json.loads(path.read_text())
        check(folder, path.name, manifest)
        if signed is not None and sha256(path) not in signed:
            raise Defect(f"{path.name}: none of the jobs signed it")
        asked = manifest["request"]
        chains.setdefault((asked["ledger"], asked["format"], asked["level"]), []).append((path, manifest))
    if not chains:
        raise Defect("there is no manifest")
    for (ledger, form, _), chain in sorted(chains.items(), key=str):
        chain.sort(key=lambda one: one[1]["request"]["from"] or "")
        if chain[0][1]["previous"]:
            raise Defect(f"{chain[0][0].name}: the manifest before it is missing")
        for (former, earlier), (path, later) in zip(chain, chain[1:]):
            try:
                follow((former, earlier), (path.name, later))
            except ValueError as error:
                raise Defect(f"{path.name}: {error}") from error
        ends = chain[-1][1]["request"]["to"]
        if through and ends != through:
            raise Defect(f"the exports of {ledger} as {form} end on {ends}, not on {through}")
        if through and not chain[-1][1].get("complete"):
            raise Defect(f"{chain[-1][0].name}: it was made before the end of {through}, or of a part of the journal")
        if last and sha256(chain[-1][0]) not in last:
            raise Defect(f"{chain[-1][0].name}: it is not the manifest that was kept")
    return chains


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--through", metavar="DAY")
    arguments.add_argument("--last", nargs="+", default=(), metavar="SHA256")
    arguments.add_argument("--signed", nargs="+", type=pathlib.Path, default=(), metavar="JOB")
    arguments.add_argument("--key", metavar="HEX")
    given = arguments.parse_args()
    if bool(given.signed) != bool(given.key):
        arguments.error("--signed and --key go together")
    try:
        signed = signed_by(given.signed, given.key) if given.signed else None
        chains = verify(given.folder, given.through, given.last, signed)
    except (Defect, OSError, KeyError, TypeError, ValueError) as defect:
        sys.exit(f"verify_exports: {defect}")
    for (ledger, form, _), chain in sorted(chains.items(), key=str):
        last = chain[-1][1]
        print(f"{ledger} as {form}: {len(chain)} manifests through {last['request']['to'] or 'the cut'}, "
              f"cut {last['cut']}, head {last['head']}")


if __name__ == "__main__":
    main()
