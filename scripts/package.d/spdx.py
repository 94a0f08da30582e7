"""An SPDX 2.3 document of the package: the program, what is linked into it, and the libraries it loads.

spdx.py DEB VERSION SECONDS-SINCE-1970 EXECUTABLE REPOSITORY
"""

import hashlib
import json
import re
import subprocess
import sys
import time
import urllib.parse


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


def loaded(executable):
    """The Debian packages of the shared libraries that the program names, with their versions."""
    names = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", executable))
    for name in sorted(names):
        found = output("dpkg-query", "--search", f"*/{name}").splitlines()
        packages = sorted({line.rsplit(": ", 1)[0] for line in found})
        for package in packages:
            if "cross" not in package and "i386" not in package:
                version = output("dpkg-query", "--show", "--showformat=${Version}", package)
                yield package.split(":")[0], version, package.split(":")[-1]


def package_url(name, version, architecture):
    """Of a Debian package, whose name may have a plus."""
    name, version = (urllib.parse.quote(text, safe="") for text in (name, version))
    return f"pkg:deb/debian/{name}@{version}?arch={architecture}"


def package(identifier, name, version, license_, **more):
    return {
        # Letters, digits, dots and hyphens only.
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", identifier),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license_,
        "licenseDeclared": license_,
        "copyrightText": "NOASSERTION",
        **more,
    }


def main():
    deb, version, seconds, executable, repository = sys.argv[1:]
    digest = sha256(deb)
    swift = re.search(r"Swift version (\S+)", output("swift", "--version"))[1]
    swift_license = "Apache-2.0 WITH Swift-exception"
    saltern = package(
        "saltern",
        "saltern",
        version,
        "Apache-2.0",
        packageFileName=deb.rsplit("/", 1)[-1],
        checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
        primaryPackagePurpose="APPLICATION",
        externalRefs=[
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:deb/saltern@{version}",
            }
        ],
    )
    linked = [
        package("swift-runtime", "Swift standard library, Dispatch and Foundation", swift, swift_license),
        package("swift-foundation-icu", "ICU as in Swift's Foundation", swift, "Unicode-3.0"),
    ]
    contained = [package("bip39-english", "English word list of BIP-39, from python-mnemonic", "0.21", "MIT")]
    dynamic = [
        package(
            f"deb-{name}",
            name,
            found,
            "NOASSERTION",
            externalRefs=[
                {
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": package_url(name, found, architecture),
                }
            ],
        )
        for name, found, architecture in dict.fromkeys(loaded(executable))
    ]

    def relation(kind, other):
        return {"spdxElementId": "SPDXRef-saltern", "relationshipType": kind, "relatedSpdxElement": other["SPDXID"]}

    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"saltern-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/saltern-{version}-{digest}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))),
            "creators": ["Tool: saltern-scripts-package"],
        },
        "packages": [saltern, *linked, *contained, *dynamic],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-saltern",
            },
            *(relation("STATIC_LINK", other) for other in linked),
            *(relation("CONTAINS", other) for other in contained),
            *(relation("DYNAMIC_LINK", other) for other in dynamic),
        ],
    }
    print(json.dumps(document, indent=2))


main()
