"""One try of a webhook: what is sent, how it is signed, and what each answer means."""

from __future__ import annotations

import base64
import datetime
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent_graph.connect.base import Letter
from agent_graph.connect.signing import key_of, signature_headers
from agent_graph.connect.webhook import MOST_WAIT_MS, Webhook, retry_after_ms
from tests.fakes.receiver import HANGS, SECRET, Receiver, answer, receiving

LETTER = Letter("run-1.7", b'{"type":"run.ended"}')


def hook(receiver: Receiver, *, timeout_ms: int = 5_000, ca_file: Path | None = None) -> Webhook:
    return Webhook(receiver.url, keys=[key_of(SECRET)], timeout_ms=timeout_ms, loopback=True, ca_file=ca_file)


def test_the_signature_is_that_of_the_standards_own_example() -> None:
    """From the page of the standard: id, time, payload and secret with the signature they give."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = signature_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', keys=[key_of(secret)], at_s=1_614_265_330
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_a_receiver_can_check_id_time_and_body() -> None:
    async with receiving() as receiver:
        assert (await hook(receiver).tell(LETTER)).state == "delivered"
        [post] = receiver.posts
    assert post.signed_with(SECRET)
    assert not post.signed_with("another secret of thirty-two bytes")
    assert post.body == LETTER.body
    assert post.headers["webhook-id"] == "run-1.7"
    assert abs(int(post.headers["webhook-timestamp"]) - time.time()) < 60
    assert post.headers["content-type"] == "application/json"


async def test_while_one_secret_replaces_the_other_both_sign() -> None:
    other = "whsec_" + base64.b64encode(b"k" * 32).decode()
    async with receiving() as receiver:
        hook = Webhook(receiver.url, keys=[key_of(other), key_of(SECRET)], timeout_ms=5_000, loopback=True)
        await hook.tell(LETTER)
    assert receiver.posts[0].signed_with(SECRET)
    assert receiver.posts[0].headers["webhook-signature"].count("v1,") == 2


@pytest.mark.parametrize("secret", ["short", "whsec_c2hvcnQ=", "whsec_no base64 at all, whatever it is"])
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match=r"24 bytes|base64"):
        key_of(secret)


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "delivered"), (204, "delivered"), (301, "refused"), (400, "refused"), (404, "refused"), (410, "refused"),
     (408, "away"), (425, "away"), (429, "away"), (500, "away"), (503, "away")],
)  # fmt: skip
async def test_what_an_answer_means(status: int, state: str) -> None:
    async with receiving() as receiver:
        receiver.answers.append(answer(status))
        receipt = await hook(receiver).tell(LETTER)
    assert receipt.state == state
    assert state == "delivered" or str(status) in receipt.said


async def test_a_redirect_is_not_followed() -> None:
    async with receiving() as elsewhere, receiving() as receiver:
        receiver.answers.append(answer(307, location=elsewhere.url))
        receipt = await hook(receiver).tell(LETTER)
        assert receipt.state == "refused"
        assert "redirect" in receipt.said
        assert not elsewhere.posts


async def test_a_slow_receiver_is_left_after_the_time_it_has() -> None:
    async with receiving() as receiver:
        receiver.answers.append(HANGS)
        receipt = await hook(receiver, timeout_ms=200).tell(LETTER)
    assert (receipt.state, receipt.said) == ("away", "it did not answer within 200 ms")


async def test_an_endless_answer_is_not_read() -> None:
    async with receiving() as receiver:
        receiver.endless = True
        assert (await hook(receiver).tell(LETTER)).state == "delivered"
        assert receiver.written < 50_000_000


async def test_nobody_there_is_said_without_the_address() -> None:
    async with receiving() as receiver:
        pass
    receipt = await hook(receiver).tell(LETTER)
    assert receipt.state == "away"
    assert "cannot be reached" in receipt.said
    assert "secret-path" not in receipt.said


async def test_how_long_it_wants_to_be_left_alone_is_heard() -> None:
    async with receiving() as receiver:
        receiver.answers.append(answer(429, retry_after="7"))
        assert (await hook(receiver).tell(LETTER)).not_before_ms == 7_000


@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [("7", 7_000), ("", 0), ("soon", 0), ("-3", 0), ("99999999999999", MOST_WAIT_MS),
     ("Thu, 01 Jan 1970 00:01:40 GMT", 60_000), ("Thu, 01 Jan 1970 00:00:01 GMT", 0)],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date_and_bounded(text: str, wait_ms: int) -> None:
    assert retry_after_ms(text, now_s=40.0) == wait_ms


# -- TLS -----------------------------------------------------------------------------------------------------------


def certificate(folder: Path, *, name: str) -> tuple[Path, Path]:
    """Files of a certificate that nobody vouches for, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)] if name[0].isalpha() else
                                                   [x509.IPAddress(__import__("ipaddress").ip_address(name))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    public, private = folder / f"{name}.pem", folder / f"{name}.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return public, private


def shown(public: Path, private: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_told_nothing(tmp_path: Path) -> None:
    async with receiving(tls=shown(*certificate(tmp_path, name="127.0.0.1"))) as receiver:
        receipt = await hook(receiver).tell(LETTER)
        assert receipt.state == "away"
        assert "certificate" in receipt.said.lower()
        assert not receiver.posts


async def test_a_certificate_of_another_name_is_told_nothing(tmp_path: Path) -> None:
    public, private = certificate(tmp_path, name="other.example")
    async with receiving(tls=shown(public, private)) as receiver:
        assert (await hook(receiver, ca_file=public).tell(LETTER)).state == "away"
        assert not receiver.posts


async def test_a_certificate_the_operator_vouches_for_is_told(tmp_path: Path) -> None:
    public, private = certificate(tmp_path, name="127.0.0.1")
    async with receiving(tls=shown(public, private)) as receiver:
        assert (await hook(receiver, ca_file=public).tell(LETTER)).state == "delivered"
