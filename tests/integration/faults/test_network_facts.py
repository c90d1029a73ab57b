"""What the records say of the network: how a connection was opened, and what TCP saw."""

import ssl
import sys
from pathlib import Path

import pytest
import trustme

import loadgen
from loadgen.metrics.records.file import RecordFile
from tests.helpers.command_line import TOKENIZER
from tests.helpers.timed_server import timed_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_records_have_the_parts_of_connecting_and_the_round_trip(
    tmp_path: Path, encrypted: bool
) -> None:
    tls = None
    if encrypted:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with timed_server(tls=tls) as server:
        settings = loadgen.RunSettings(
            base_url=server.url,
            insecure=encrypted,
            backend="openai-chat",
            tokenizer=TOKENIZER,
            random_input_len=16,
            random_output_len=4,
            request_rate=100.0,
            num_prompts=20,
            warm_connections="0",
            records=str(tmp_path / "records"),
        )
        await loadgen.run(settings)
        records = list(RecordFile(tmp_path / "records"))
    opened = [record for record in records if record.connect_parts is not None]
    assert opened, "the first request opens a connection"
    for record in opened:
        parts = record.connect_parts
        assert parts is not None
        assert record.connect_ns > 0
        assert not record.reused
        assert parts["dns"] >= 0
        assert parts["tcp"] > 0
        assert (parts["tls"] > 0) == encrypted
    for record in records:
        assert record.tcp_info is not None
        min_rtt_us, rtt_us, out_of_order, retransmits = record.tcp_info
        assert min(min_rtt_us, rtt_us) > 0, "loopback has a round trip, too"
        assert out_of_order >= -1
        assert retransmits >= 0
