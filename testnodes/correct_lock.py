#!/usr/bin/env python3
"""Corrects package-lock.json in this folder for Hardhat's EDR. To change a version:

    npm install --package-lock-only      # in a copy of this folder, with Node.js 22 or newer
    python3 correct_lock.py              # there, too; then copy both files back

npm writes down what the packages claim about themselves, and two of the claims are wrong:

* Hardhat 3's EDR claims to need Node.js 22. Its programs load in Node.js 20 as well, which Debian has, but npm leaves
  optional packages out without a word if the version of Node.js does not match.
* Hardhat 2's EDR requires its programs for all seven systems, 220 MB together. They are made optional, each for its
  system, as the packages of later versions are.
"""

import json
from pathlib import Path

LOCK = Path(__file__).with_name("package-lock.json")
LIBC = {"gnu": "glibc", "musl": "musl"}
# The order in which npm writes the members of an optional package.
ORDER = ["version", "integrity", "cpu", "dev", "libc", "license", "optional", "os"]


def correct(name: str, package: dict) -> dict:
    if package.get("engines", {}).get("node") == ">= 22":
        del package["engines"]
    if package["version"].startswith("0.12."):
        if name == "@nomicfoundation/edr":
            programs = package.pop("dependencies", {}) | package.get("optionalDependencies", {})
            others = [program for program in programs if "/edr-" not in program]
            assert not others, f"these are no programs of EDR: {others}"
            package["optionalDependencies"] = programs
        else:
            # For example linux-x64-gnu; only systems with more than one C library have the third part.
            system, cpu, *libc = name.removeprefix("@nomicfoundation/edr-").split("-")
            package |= {"os": [system], "cpu": [cpu], "optional": True}
            if system == "linux":
                package["libc"] = [LIBC[libc[0]]]
    place = {member: at for at, member in enumerate(ORDER)}
    return dict(sorted(package.items(), key=lambda item: place.get(item[0], len(ORDER))))


def main() -> None:
    lock = json.loads(LOCK.read_text())
    for path, package in lock["packages"].items():
        name = path.rpartition("node_modules/")[2]
        if name.startswith("@nomicfoundation/edr"):
            lock["packages"][path] = correct(name, package)
    LOCK.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n")


main()
