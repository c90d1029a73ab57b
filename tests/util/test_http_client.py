"""HTTP for probes: the errors for a server that cannot be reached."""

import pytest

from loadgen.errors import Unreachable
from loadgen.util import http_client


@pytest.mark.integration
@pytest.mark.parametrize(
    ("address", "reason"),
    [("127.0.0.1:1", "Connection refused"), ("nobody.invalid:80", "Name or service not known|name resolution")],
)
async def test_who_cannot_be_reached_is_named_with_the_systems_reason(address, reason):
    with pytest.raises(Unreachable, match=rf"/v1/models: no connection to {address} \(.*({reason})"):
        await http_client.get(f"http://{address}/v1/models")
