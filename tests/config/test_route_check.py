"""What is said of fields of TLS, proxy and Unix socket that cannot be used, before anything is
sent.
"""

from pathlib import Path
from typing import Any

import pytest
import trustme

from loadgen.config.credential_files import read_credential_files
from loadgen.config.settings import RunSettings, public
from loadgen.errors import BadInput
from loadgen.util.route import Route, proxy_of_environment
from loadgen.workload import target

HTTPS = "https://h.test"


def refusal(**fields: Any) -> str:
    with pytest.raises(BadInput) as refused:
        RunSettings(**{"base_url": HTTPS} | fields).checked()
    return str(refused.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem; pairs one.pem and one.key, two.pem and two.key; text.pem; broken.pem; secret.key."""
    folder = tmp_path_factory.mktemp("pem")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    for name in ("one", "two"):
        issued = authority.issue_cert(f"{name}.test")
        issued.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    (folder / "text.pem").write_text("no certificate")
    (folder / "broken.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    )
    (folder / "secret.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    return folder


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"ca_cert": "none.pem"},
            "--ca-cert: {}/none.pem cannot be read (No such file or directory); name a PEM file "
            "of certificates",
        ),
        (
            {"ca_cert": "text.pem"},
            "--ca-cert: {}/text.pem contains no certificate in PEM format; name a PEM file of "
            "certificates",
        ),
        ({"ca_cert": "broken.pem"}, "--ca-cert: {}/broken.pem cannot be used ("),
        (
            {"client_cert": "one.pem"},
            "--client-cert: {}/one.pem contains no private key in PEM format; give --client-key "
            "FILE",
        ),
        (
            {"client_cert": "one.pem", "client_key": "none.key"},
            "--client-key: {}/none.key cannot be read (No such file or directory); check "
            "--client-key",
        ),
        (
            {"client_cert": "one.pem", "client_key": "two.key"},
            "--client-key: its key does not belong to the certificate in {}/one.pem; name the "
            "files of one pair",
        ),
        (
            {"client_cert": "one.pem", "client_key": "secret.key"},
            "--client-key: the private key in {}/secret.key is encrypted; decrypt it with `openssl "
            "pkey -in FILE -out NEW`",
        ),
        ({"client_key": "one.key"}, "--client-key: given without --client-cert; add --client-cert"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    fields: dict[str, str], said: str, folder: Path
) -> None:
    paths = {name: str(folder / file) for name, file in fields.items()}
    assert refusal(**paths).startswith(said.format(folder))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"base_url": "http://h.test", "server_name": "x"},
            "--server-name: given without a server that has TLS; give --base-url https://HOST, or "
            "leave it out",
        ),
        (
            {"insecure": True, "ca_cert": "x"},
            "--ca-cert: given together with --insecure, which trusts every certificate; leave one "
            "of the two out",
        ),
        (
            {"proxy": "https://u:secret@p:1"},
            "--proxy: https://(given)@p:1: only HTTP proxies are supported; write "
            "http://HOST:PORT, with USER:PASSWORD@ before HOST if it wants them; TLS to the server "
            "goes through it",
        ),
        ({"proxy": "http://u:secret@"}, "--proxy: invalid URL 'http://(given)@'; write"),
        ({"proxy": "http://p:0"}, "--proxy: invalid URL 'http://p:0'; write http://HOST:PORT"),
        ({"proxy": "http://p:1/path"}, "--proxy: invalid URL 'http://p:1/path'; write"),
        (
            {"base_url": None, "proxy": "http://p:1"},
            "--proxy: given without a server to reach; give --base-url",
        ),
        (
            {"proxy": "p:1", "unix_socket": "/s"},
            "--proxy: given together with --unix-socket, which is for a server on this machine; "
            "leave one of the two out",
        ),
        ({"unix_socket": "/s", "source_address": "127.0.0.2"}, "--source-address: given together"),
        (
            {"unix_socket": "/" + "s" * 107},
            f"--unix-socket: '/{'s' * 107}' is no path of a Unix socket: it has 1 to 107 bytes",
        ),
        (
            {"unix_socket": "/s", "base_url": ("http://a", "http://b")},
            "--unix-socket: given for 2 servers, and one listens on it; give one --base-url",
        ),
        (
            {"unix_socket": "/s", "base_url": None, "engine": "sim"},
            "--unix-socket: given together with --engine, which starts its own server",
        ),
    ],
)
def test_fields_that_do_not_fit_together_are_named(fields: dict[str, Any], said: str) -> None:
    assert refusal(**fields).startswith(said)


def test_one_file_may_have_certificate_and_key(folder: Path) -> None:
    RunSettings(base_url=HTTPS, client_cert=str(folder / "both.pem")).checked()


def test_a_context_is_the_same_until_its_file_changes(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes((folder / "ca.pem").read_bytes())
    route = Route(ca_cert=str(path))
    first = route.tls_context()
    assert Route(ca_cert=str(path)).tls_context() is first
    path.write_bytes((folder / "one.pem").read_bytes())
    path.touch()
    assert route.tls_context() is not first


def test_the_password_of_a_proxy_is_in_no_text_of_the_settings() -> None:
    settings = RunSettings(base_url=HTTPS, proxy="http://me:secret@p:1")
    route = target.route(settings)
    assert public(settings)["proxy"] == "http://(given)@p:1"
    assert "secret" not in f"{settings!r} {route!r} {route}"
    assert route.proxy == "http://me:secret@p:1"


def test_a_file_may_hold_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("http://me:secret@p:1\n")
    fields = read_credential_files({"proxy": f"@{tmp_path / 'proxy'}"})
    assert fields["proxy"] == "http://me:secret@p:1"


def test_socket_and_name_are_those_of_the_server_alone() -> None:
    settings = RunSettings(base_url=HTTPS, unix_socket="/s", server_name="n", insecure=True)
    both = Route(verify=False, server_name="n", unix_socket="/s")
    assert target.route(settings) == target.route(settings, f"{HTTPS}:443/metrics") == both
    assert target.route(settings, "https://other.test/metrics") == Route(verify=False)


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "http://h.test:8000", None),
        ({"http_proxy": "http://p:1"}, "http://h.test:8000", "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "https://h.test", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://h.test", None),
        ({"all_proxy": "http://p:1"}, "https://h.test", "http://p:1"),
        ({"http_proxy": "http://p:1", "no_proxy": "h.test"}, "http://h.test:8000", None),
        ({"http_proxy": "http://p:1", "no_proxy": ".test"}, "http://h.test:8000", None),
        ({"http_proxy": "http://p:1", "no_proxy": "*"}, "http://h.test:8000", None),
    ],
)
def test_the_environment_names_the_proxy_of_a_url(
    variables: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of_environment(url) == proxy


def test_a_proxy_of_the_environment_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "socks5://u:secret@p:1")
    said = r"--proxy env \(https_proxy\): socks5://\(given\)@p:1: only HTTP proxies"
    with pytest.raises(BadInput, match=said):
        target.route(RunSettings(base_url=HTTPS, proxy="env"))
