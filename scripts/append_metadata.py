#!/usr/bin/env python3
"""Turns a shared object into a loadable DuckDB extension: a copy with the footer that DuckDB reads before dlopen.

The footer has 534 bytes: the header of a WebAssembly custom section named duckdb_signature (22 bytes, there so that one
format serves all platforms), eight fields of 32 bytes padded with NUL, last field first, and room for a signature. All
zeroes there means unsigned, which a host loads with allow_unsigned_extensions.
"""

import argparse
import os

FIELD_BYTES = 32
SIGNATURE_BYTES = 256
FOOTER_FORMAT = "4"


def leb128(value: int) -> bytes:
    out = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def field(text: str) -> bytes:
    raw = text.encode("ascii")
    if len(raw) > FIELD_BYTES:
        raise SystemExit(f"append_metadata: '{text}' is longer than {FIELD_BYTES} bytes")
    return raw.ljust(FIELD_BYTES, b"\0")


def footer(platform: str, duckdb_version: str, extension_version: str, abi: str) -> bytes:
    unused = [""] * 3
    fields = unused + [abi, extension_version, duckdb_version, platform, FOOTER_FORMAT]
    payload = b"".join(map(field, fields)) + bytes(SIGNATURE_BYTES)
    name = b"duckdb_signature"
    # 0 is the id of a custom section. Upstream counts 19 bytes for the name and what precedes the payload.
    return b"\0" + leb128(len(payload) + len(name) + 3) + bytes([len(name)]) + name + leb128(len(payload)) + payload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", required=True)
    parser.add_argument("--duckdb-version", required=True)
    parser.add_argument("--extension-version", required=True)
    # CPP: bound to one exact DuckDB version, because DuckDB's C++ interface is.
    parser.add_argument("--abi", default="CPP")
    parser.add_argument("shared_object")
    parser.add_argument("extension")
    args = parser.parse_args()

    tail = footer(args.platform, args.duckdb_version, args.extension_version, args.abi)
    # A process may have the old file mapped: replace it, never write into it.
    partial = args.extension + ".partial"
    with open(args.shared_object, "rb") as source, open(partial, "wb") as target:
        while chunk := source.read(1 << 20):
            target.write(chunk)
        target.write(tail)
    os.chmod(partial, 0o755)
    os.replace(partial, args.extension)


if __name__ == "__main__":
    main()
