"""Chat completions of servers that want requests signed by AWS Signature Version 4.

pip install ./examples/sigv4
export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... AWS_REGION=us-west-2
loadgen run --backend aws-chat --model MODEL --tokenizer built-in \
    --base-url https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1

AWS_SERVICE names the service where it is not bedrock: lambda for the URL of a function, execute-api
for an API Gateway.
"""

import hashlib
import hmac
import os
from datetime import UTC, datetime
from functools import reduce
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from loadgen.errors import BadInput
from loadgen.workload.endpoints import generation

ALGORITHM = "AWS4-HMAC-SHA256"


class Signer(Struct, frozen=True):
    """Signs requests, as AWS documents it ("Create a signed AWS API request").

    Attributes:
        key_id: The access key.
        secret: Its secret.
        region: The region of the server, such as us-west-2.
        service: The name of the service in signatures.
        token: The token of temporary credentials; empty: there is none.
    """

    key_id: str
    secret: str
    region: str
    service: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Signer({self.region}, {self.service})"

    @property
    def fixed(self) -> dict[str, str]:
        """The headers that every request has."""
        return {"X-Amz-Security-Token": self.token} if self.token else {}

    def __call__(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers of the signature of a request that is sent now."""
        return self.headers(method, url, body, datetime.now(UTC))

    def headers(self, method: str, url: str, body: bytes, at: datetime) -> dict[str, str]:
        """Return the headers of the signature of a request that is sent at a time."""
        parts = urlsplit(url)
        date = f"{at:%Y%m%dT%H%M%SZ}"
        sent = {"Host": parts.netloc, "X-Amz-Date": date} | self.fixed
        signed = sorted((name.lower(), value) for name, value in sent.items())
        names = ";".join(name for name, _ in signed)
        query = sorted(
            f"{quote(name, '-_.~')}={quote(value, '-_.~')}"
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        )
        request = (
            method,
            quote(parts.path or "/", "/-_.~"),
            "&".join(query),
            *(f"{name}:{value}" for name, value in signed),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
        scope = (date[:8], self.region, self.service, "aws4_request")
        digest = hashlib.sha256("\n".join(request).encode()).hexdigest()
        text = "\n".join((ALGORITHM, date, "/".join(scope), digest))
        signature = reduce(_hmac, (*scope, text), f"AWS4{self.secret}".encode()).hex()
        credential = "/".join((self.key_id, *scope))
        return {
            "X-Amz-Date": date,
            "Authorization": f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, "
            f"Signature={signature}",
        }


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _variable(name: str) -> str:
    if name not in os.environ:
        raise BadInput(name, "is not set", f"export {name}=..., as for AWS's own commands")
    return os.environ[name]


SIGNER = Signer(
    _variable("AWS_ACCESS_KEY_ID"),
    _variable("AWS_SECRET_ACCESS_KEY"),
    _variable("AWS_REGION"),
    os.environ.get("AWS_SERVICE", "bedrock"),
    os.environ.get("AWS_SESSION_TOKEN", ""),
)
CHAT = replace(generation.CHAT, sign=SIGNER, headers=SIGNER.fixed)
