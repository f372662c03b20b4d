"""Prints the manifest with which krew installs `kubectl emco` from the archives in a folder: VERSION URL FOLDER."""

import hashlib
import pathlib
import sys

HEAD = """# How krew installs the plug-in: kubectl krew install --manifest=emco.yaml
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: emco
spec:
  version: v{version}
  homepage: https://emco.example.com/book
  shortDescription: Composite applications on many clusters
  description: |
    Registers clusters with an EMCO hub, empties and removes them, and shows
    where composite applications run, why there, and what is not ready on which cluster.
  platforms:"""

PLATFORM = """  - selector:
      matchLabels:
        os: linux
        arch: {arch}
    uri: {url}/{name}
    sha256: {digest}
    bin: kubectl-emco"""


def main(version, url, folder):
    print(HEAD.format(version=version))
    for archive in sorted(pathlib.Path(folder).glob("kubectl-emco_linux_*.tar.gz")):
        arch = archive.name.removesuffix(".tar.gz").rpartition("_")[2]
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        print(PLATFORM.format(arch=arch, url=url.rstrip("/"), name=archive.name, digest=digest))


main(*sys.argv[1:])
