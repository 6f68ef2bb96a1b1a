"""A certificate authority of one run, and the server certificate that it signs."""

import dataclasses
import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=2)
# A client's clock may be a little behind.
_SKEW = dt.timedelta(hours=1)


@dataclasses.dataclass(frozen=True)
class Certificates:
    """PEM texts: the authority to trust, and the server's certificate with its key."""

    ca_pem: str
    certificate_pem: str
    key_pem: str = dataclasses.field(repr=False)


def make_certificates() -> Certificates:
    """For 127.0.0.1 and localhost. The authority's key is thrown away.

    The lifetime counts from the machine's own clock: that is what a TLS client looks at.
    """
    now = dt.datetime.now(dt.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _sign_authority(ca_key, now)
    certificate = _sign_server(ca_key, key.public_key(), authority, now)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certificates(
        ca_pem=authority.public_bytes(Encoding.PEM).decode(),
        certificate_pem=certificate.public_bytes(Encoding.PEM).decode(),
        key_pem=private.decode(),
    )


def _sign_authority(key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    name = _name("Shiftwright local run")
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _builder(name, name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _sign_server(
    ca_key: ec.EllipticCurvePrivateKey,
    public_key: ec.EllipticCurvePublicKey,
    authority: x509.Certificate,
    now: dt.datetime,
) -> x509.Certificate:
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return (
        _builder(_name("127.0.0.1"), authority.subject, public_key, now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(purpose, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(signer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
