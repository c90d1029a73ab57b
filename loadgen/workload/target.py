"""`Target`: an endpoint of a server, with the heads and bodies of the requests to it."""

import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson
from msgspec import field, structs

from loadgen.config import server_url
from loadgen.config.backends import V1
from loadgen.config.request_class import CLASS, RequestClass
from loadgen.config.settings import RunSettings
from loadgen.config.target import (
    AIOHTTP,
    FROM_ENVIRONMENT,
    MAX_COMPLETION_TOKENS,
    MAX_TOKENS,
    NO_HEADER,
)
from loadgen.errors import BadInput, setting, within
from loadgen.util import key_command
from loadgen.util.redaction import (
    WithCredentials,
    redact_user,
    split_header,
)
from loadgen.util.route import DIRECT, Route, basic_auth, proxy_of_environment, proxy_url
from loadgen.workload import endpoints, image
from loadgen.workload.endpoints.api import (
    LORA_PATH,
    SAMPLING,
    Api,
    Counts,
)
from loadgen.workload.prompt import Prompt

MODELS = "/v1/models"
_REQUEST_ID = "x-request-id"
_PORT = re.compile(r"^https?://[^/]*:([0-9]{1,9})(?:[/?]|$)")
AZURE_KEY = "api-key"  # header of deployments, which take no key as a bearer token
_FRAMING = ("content-length", "transfer-encoding", "connection")


class Target(WithCredentials, frozen=True):
    """One endpoint of one server.

    Attributes:
        url: Scheme, host, port and path of the endpoint.
        model: The model's name in requests.
        api: The form of its requests.
        headers: Extra request headers, with credentials; never logged.
        fields: Further fields of every request body, beside model, prompt and length.
        generates: Whether answers have tokens; embeddings and scores have none.
        streams: Whether answers are asked for as streams.
        content_parts: Whether the text of a chat is sent as a list with one part.
        route: How the server is reached.
        limits_answers: Whether a request has a maximum of tokens.
        omit: Fields that no body has.
        continuous_usage: Whether usage is requested with every event, not only with the last one.
        request_id_prefix: The prefix of every X-Request-Id.
        session_header: The header with the id of the session, in requests of sessions; None: there
            is none.
        classes: The same endpoint as each class of requests asks it; empty without classes.
    """

    url: str
    model: str
    api: Api
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    generates: bool = True
    streams: bool = True
    content_parts: bool = False
    route: Route = DIRECT
    limits_answers: bool = True
    omit: tuple[str, ...] = ()
    continuous_usage: bool = False
    request_id_prefix: str = "loadgen-"
    session_header: str | None = "X-Session-ID"
    classes: "tuple[Target, ...]" = ()

    @classmethod
    def from_settings(cls, settings: RunSettings, model: str) -> "Target":
        """Create the target of the settings, the first of several.

        `model` is the model's name in requests.
        """
        fields = {
            name: value for name in SAMPLING if (value := getattr(settings, name)) is not None
        }
        if settings.ignore_eos:
            fields["ignore_eos"] = True
        return cls(
            url=base_url(settings) + endpoint(settings),
            model=model,
            api=endpoints.find(settings),
            headers=headers(settings),
            fields=fields | _body(settings.extra_body),
            generates=settings.generates,
            streams=settings.streams,
            content_parts=settings.content_parts,
            route=route(settings),
            limits_answers=not settings.no_max_tokens,
            omit=settings.omit,
            continuous_usage=settings.continuous_usage,
            request_id_prefix=settings.request_id_prefix,
            session_header=None
            if settings.session_header == NO_HEADER
            else settings.session_header,
            classes=tuple(
                cls._of_class(settings, request_class, model)
                for request_class in settings.request_classes
            ),
        )

    @classmethod
    def _of_class(cls, settings: RunSettings, request_class: RequestClass, model: str) -> "Target":
        with within(CLASS, request_class.name):
            target = cls.from_settings(
                settings.of_class(request_class), request_class.model or model
            )
        if request_class.model is None or LORA_PATH not in (
            target.api.adapter_field,
            *target.fields,
        ):
            return target
        return structs.replace(target, fields=target.fields | {LORA_PATH: request_class.model})

    @property
    def each_class(self) -> "tuple[Target, ...]":
        """The endpoint as each class asks it; itself without classes."""
        return self.classes or (self,)

    def body(self, prompt: Prompt) -> bytes:
        """Return the JSON body of a request for `prompt`, as its class asks.

        Raises:
            BadInput: The prompt is a chat, and the endpoint takes no messages.
        """
        if self.classes:
            return self.classes[prompt.class_number].body(prompt)
        fields: dict[str, Any] = {"stream": self.streams} if self.generates else {}
        if self.streams and self.api.counts is Counts.AS_ASKED:
            fields["stream_options"] = {"include_usage": True}
            if self.continuous_usage:
                fields["stream_options"]["continuous_usage_stats"] = True
        if self.content_parts and self.chat and not prompt.messages:
            message = {"role": "user", "content": [{"type": "text", "text": prompt.text}]}
            prompt = structs.replace(prompt, messages=(message,))
        if image.has_images(prompt.messages) and not self.api.takes_images:
            problem = "its prompts have images, and this API takes none"
            raise BadInput(setting.dataset_name, problem, f"use {setting.backend} openai-chat")
        fields |= self.fields | prompt.fields
        body = self.api.body(prompt, self.model, fields)
        if prompt.verbatim:
            if self.api.length_field not in prompt.fields:
                body.pop(self.api.length_field, None)
        elif not self.limits_answers and prompt.output_tokens != 1:  # of a probe, to fill a cache
            for part in (body, body.get("sampling_params", {})):
                part.pop(self.api.length_field, None)
        if MAX_COMPLETION_TOKENS in self.omit and MAX_COMPLETION_TOKENS in body:
            body[MAX_TOKENS] = body[MAX_COMPLETION_TOKENS]
        for name in self.omit:
            body.pop(name, None)
        return orjson.dumps(body, image.to_json, orjson.OPT_PASSTHROUGH_DATACLASS)

    def signature(self, body: bytes) -> dict[str, str]:
        """Return the headers that a request with this body alone has, as its API signs it."""
        return {} if self.api.sign is None else {**self.api.sign("POST", self.url, body)}

    @property
    def chat(self) -> bool:
        """Whether it takes the messages of a chat."""
        return self.api.takes_messages

    def head(self, run: str = "") -> bytes:
        """Return the head of the requests up to the number of each, which is followed by its
        Content-Length and the lines that it alone has.

        `run` precedes the number in X-Request-Id, because a server may need unique ids.
        """
        parts = urlsplit(self.url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = {
            "Host": parts.netloc,
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "loadgen",
        }
        for name, value in self.headers.items():
            _put(lines, name, value)
        text = f"POST {path} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()
        )
        return f"{text}X-Request-Id: {self.request_id_prefix}{run}".encode("latin-1")

    def session_line(self, run: str = "") -> bytes | None:
        """Return the line that names the session of a request, up to the number of the session.

        None if no header names the session, or a header of the user's has its name.
        """
        if self.session_header is None or self.session_header.lower() in map(
            str.lower, self.headers
        ):
            return None
        return f"{self.session_header}: {run}".encode("latin-1")


def request_targets(settings: RunSettings, model: str) -> tuple[Target, ...]:
    """Return the target of each server that the settings name.

    Args:
        settings: The settings of the run.
        model: The model's name in requests.
    """
    return tuple(Target.from_settings(server, model) for server in settings.apart())


def _body(extra: dict[str, Any] | None) -> dict[str, Any]:
    try:
        orjson.dumps(extra)
    except (TypeError, ValueError) as error:
        raise BadInput(
            setting.extra_body, f"cannot be sent ({error})", "write plain JSON"
        ) from error
    return extra or {}


def is_chat(settings: RunSettings) -> bool:
    """Return whether the settings request answers to the messages of a chat."""
    return endpoints.find(settings).takes_messages


def endpoint(settings: RunSettings) -> str:
    """Return the path of the API, with the query of the URL: as given, else by backend."""
    path = settings.endpoint
    if path is None:
        path = _below_base(settings, endpoints.find(settings).path)
    if not path.isascii() or not path.isprintable() or " " in path:
        raise BadInput(
            setting.endpoint, f"invalid path {path!r}", "write it percent-encoded, as in a URL"
        )
    return path if path.startswith("/") else "/" + path


def models_url(settings: RunSettings) -> str | None:
    """Return the URL at which the server, the first of several, lists its models; None for a
    deployment, which lists none.
    """
    base = base_url(settings)
    if deployment(settings) is not None:
        return None
    return base + _below_base(settings, MODELS)


def deployment(settings: RunSettings) -> str | None:
    """Return the name of the deployment of Azure that the URL is of; None if it is of none."""
    match = server_url.DEPLOYMENT.search(urlsplit(base_url(settings)).path)
    return match and match[1]


def _below_base(settings: RunSettings, path: str) -> str:
    """Return the path of an API below the base URL, with its query."""
    if not settings.urls:
        return path
    parts = _base_parts(settings.urls[0])
    if server_url.ROOT.search(parts.path.rstrip("/")):
        path = path.removeprefix(V1)
    return path + (f"?{parts.query}" if parts.query else "")


def base_url(settings: RunSettings) -> str:
    """Return scheme, host and port of the server, the first of several, without a user and a
    trailing slash.
    """
    if not settings.urls:
        if settings.unix_socket is not None and settings.host is None and settings.port is None:
            return "http://localhost"
        host = settings.host or "127.0.0.1"
        address = f"[{host}]" if ":" in host else host
        return f"http://{address}:{8000 if settings.port is None else settings.port}"
    parts = _base_parts(settings.urls[0])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of a URL. The default port is that of the scheme."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def route(settings: RunSettings, url: str | None = None) -> Route:
    """Return how to reach a URL; None: the server, the first of several.

    Its trust and its proxy are those of the settings for each URL. A Unix socket, and a name that
    a certificate must have, are the server's alone.

    Raises:
        BadInput: The environment, which `--proxy env` asks, names a proxy that cannot be used.
    """
    proxy = settings.proxy
    if proxy is not None:
        proxy = (
            proxy_of_environment(url or base_url(settings))
            if proxy == FROM_ENVIRONMENT
            else proxy_url(proxy)
        )
    servers = map(base_url, settings.apart()) if url is not None else ()
    is_server = url is None or origin(url) in map(origin, servers)
    return Route(
        verify=not settings.insecure,
        ca_cert=settings.ca_cert,
        client_cert=settings.client_cert,
        client_key=settings.client_key,
        server_name=settings.server_name if is_server else None,
        proxy=proxy,
        tunnels=settings.transport != AIOHTTP,
        unix_socket=settings.unix_socket if is_server else None,
    )


def headers(settings: RunSettings) -> dict[str, str]:
    """Return the extra request headers: --header over --api-key, or the latest key of
    --api-key-command, over a user in the first URL over OPENAI_API_KEY.
    """
    api = endpoints.find(settings)
    fields = dict(api.headers)
    user = _base_parts(settings.urls[0]).netloc.rpartition("@")[0] if settings.urls else ""
    if settings.api_key or settings.api_key_command or not user:
        key = settings.api_key or key_command.in_process(settings.api_key_command)
        key_header = settings.api_key_header
        if key_header is None and settings.urls and deployment(settings) is not None:
            key_header = AZURE_KEY
        if key and key_header is not None:
            fields[key_header] = _clean(setting.api_key, key)
        elif key:
            fields["Authorization"] = f"Bearer {_clean(setting.api_key, key)}"
            if api.key_header is not None:
                fields[api.key_header] = key
    else:
        fields["Authorization"] = basic_auth(user)
    for line in settings.header:
        pair = split_header(line)
        if pair is None:
            raise BadInput(
                setting.header, "a header has no name, or neither = nor :", "write Name=value"
            )
        name, value = pair
        if name.lower() in _FRAMING:
            raise BadInput(
                setting.header,
                f"{name} cannot be set",
                "leave it out: it is different for each request",
            )
        if name.lower() == _REQUEST_ID:
            problem = f"{name} would be the same for every request"
            raise BadInput(
                setting.header,
                problem,
                f"give {setting.request_id_prefix}: a unique part follows it",
            )
        _put(fields, name, _clean(setting.header, value))
    return fields


def headers_of_get(settings: RunSettings, url: str) -> dict[str, str]:
    """Return the headers of a GET of a URL of the server, signed where its API signs requests."""
    sign = endpoints.find(settings).sign
    return headers(settings) | ({} if sign is None else {**sign("GET", url, b"")})


def _base_parts(url: str) -> SplitResult:
    parts = server_url.parsed(url)
    if parts is None:
        shown = redact_user(url)
        beyond = _PORT.search(shown)
        if beyond is not None and not 0 < int(beyond[1]) < 65536:
            raise BadInput(
                setting.base_url,
                f"{shown!r}: the port {beyond[1]} is out of range",
                "give a port from 1 to 65535",
            )
        meant = (
            f"http://{shown}"
            if "://" not in url and server_url.parsed(f"http://{url}")
            else "http://HOST:PORT"
        )
        raise BadInput(setting.base_url, f"invalid http or https URL {shown!r}", f"write {meant}")
    return parts


def _put(headers: dict[str, str], name: str, value: str) -> None:
    """Set a header, and remove one of the same name in any case."""
    for same in [other for other in headers if other.lower() == name.lower()]:
        del headers[same]
    headers[name] = value


def _clean(flag: str, value: str) -> str:
    # The value stays out of the message: it may be a secret.
    if any(ord(c) < 32 or ord(c) > 255 for c in value):
        raise BadInput(
            flag, "contains control or non-Latin characters", "write printable Latin-1 text"
        )
    return value
