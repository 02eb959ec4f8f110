"""Ids that tell engines apart which would round, normalise or change case, and a salt that must be
escaped; every engine throws the same coins for them."""

import hashlib

SALT = "isocost's sält"

NUMBERS = [0, 1, -1, 9, 10, -10, 999_999_999, 10**9, 10**18, -(10**18), 2**53 + 1, 2**63 - 1]
NUMBERS += [-(2**63)]
TEXTS = [
    "", " ", "a", "007", "1.0", "it's", 'say "so"', "back\\slash", "semi;--", "a\tb\nc", "%_",
    "é", "e\u0301", "שלום", "مرحبا", "日本語", "🙂", "👩‍👩‍👧‍👦", "\u200b", "ﬁ", "İ",
    "x" * 55, "ü" * 64,
]  # fmt: skip


def by_hashlib(value, salt=SALT):
    return int(hashlib.md5(f"{salt}:{value}".encode()).hexdigest()[:13], 16)
