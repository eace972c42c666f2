#!/usr/bin/env python3
"""Holds the functions that include/merutable.h declares against the symbols that a library exports.

check_exports.py HEADER LIBRARY. The two sets must be equal: a function missing from the library breaks clients at link
time, one missing from the header cannot be used and still binds us.
"""

import re
import subprocess
import sys


def declared(header: str) -> set[str]:
    with open(header, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", " ", text, flags=re.M)
    # A name before a parenthesis: declarations only, since the header has no bodies and no macros are left.
    return set(re.findall(r"\b(meru_\w+)\s*\(", text))


def exported(library: str) -> set[str]:
    if sys.platform == "darwin":
        command, prefix = ["nm", "-gU", library], "_"
    else:
        command, prefix = ["nm", "-D", "--defined-only", library], ""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].removeprefix(prefix).split("@")[0] for line in output.splitlines() if line.strip()}


def main(header: str, library: str) -> int:
    want, have = declared(header), exported(library)
    for name in sorted(want - have):
        print(f"{library} does not export {name}, which {header} declares", file=sys.stderr)
    for name in sorted(have - want):
        print(f"{library} exports {name}, which {header} does not declare", file=sys.stderr)
    return int(want != have)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
