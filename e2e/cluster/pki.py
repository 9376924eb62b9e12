"""The keys and certificates of a native cluster: two authorities, what each component shows of itself, and the key that
signs service account tokens. OpenSSL makes them; they last as long as the cluster."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.layout import Layout

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = "3650"

_LEAF = """\
extendedKeyUsage=serverAuth,clientAuth
keyUsage=critical,digitalSignature
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""
"""What every certificate says besides its hosts. Python 3.13 checks as strictly as RFC 5280 is written."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate says: its file name, its owner (`O` is the group, `CN` the user) and its host names."""

    name: str
    subject: str
    hosts: tuple[str, ...] = ()
    authority: str = "ca"


def certificates(layout: Layout) -> tuple[Certificate, ...]:
    """All certificates that the components of the cluster show each other."""
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    addresses = ("127.0.0.1", layout.address, layout.api_service)
    api_hosts = (*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses))
    return (
        Certificate("apiserver", "/CN=kube-apiserver", api_hosts),
        Certificate("admin", "/O=system:masters/CN=admin"),
        Certificate("controller-manager", "/CN=system:kube-controller-manager"),
        Certificate("scheduler", "/CN=system:kube-scheduler"),
        Certificate("kubelet", f"/O=system:nodes/CN=system:node:{layout.name}", (f"IP:{layout.address}",)),
        Certificate("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
        Certificate("proxy", "/CN=system:kube-proxy"),
        Certificate("dns", "/CN=system:coredns"),
        Certificate("netpol", "/CN=system:kube-router"),
        Certificate("front-proxy-client", "/CN=front-proxy-client", authority="front-proxy-ca"),
    )


def ensure(layout: Layout) -> None:
    """Makes all keys and certificates, or none: the folder appears under its name when it is complete."""
    if layout.pki.exists():
        return
    draft = layout.run / "pki.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    _authority(draft, "ca", "kubernetes-ca")
    _authority(draft, "front-proxy-ca", "front-proxy-ca")
    for certificate in certificates(layout):
        _sign(draft, certificate)
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", draft / "service-accounts.key")
    run("openssl", "ec", "-in", draft / "service-accounts.key", "-pubout", "-out", draft / "service-accounts.pub")
    os.rename(draft, layout.pki)


def _authority(folder: Path, name: str, common_name: str) -> None:
    files = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")
    usage = ("-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign")
    run("openssl", "req", "-x509", *_NEW_KEY, "-days", _DAYS, *files, "-subj", f"/CN={common_name}", *usage)


def _sign(folder: Path, certificate: Certificate) -> None:
    key, request, extensions = (folder / f"{certificate.name}.{ending}" for ending in ("key", "csr", "ext"))
    run("openssl", "req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", certificate.subject)
    hosts = f"subjectAltName={','.join(certificate.hosts)}\n" if certificate.hosts else ""
    extensions.write_text(f"{hosts}{_LEAF}")
    authority = folder / certificate.authority
    signer = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial")
    result = ("-extfile", extensions, "-out", folder / f"{certificate.name}.crt")
    run("openssl", "x509", "-req", "-in", request, *signer, "-days", _DAYS, *result)
