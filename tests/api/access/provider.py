"""A small OpenID Connect provider: it signs ID tokens with RS256, and checks codes and PKCE."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "penstock", "client-secret"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """What a provider says, for tests to change."""

    url: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    signing_key: rsa.RSAPrivateKey | None = None
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        ends = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        return {"issuer": self.url, **{name: f"{self.url}/{name}" for name in ends}}

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def authorize(self, given: dict[str, str]) -> str:
        """Where a browser is sent whose user has logged in."""
        assert given["response_type"] == "code"
        assert given["client_id"] == CLIENT
        code = secrets.token_urlsafe(8)
        self.codes[code] = given
        return (
            f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state'], 'iss': self.url})}"
        )

    def token(self, given: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The answer to a code; None if something is wrong with it."""
        asked = self.codes.pop(given["code"], None)
        digest = hashlib.sha256(given["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if asked is None or asked["code_challenge"] != challenge or authorization != basic:
            return None
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "42", "iat": now, "exp": now + 60}
        claims |= {"nonce": asked["nonce"], **self.claims}
        key = self.signing_key or self.key
        return {"id_token": jwt.encode(claims, key, "RS256", {"kid": "one"}), "token_type": "Bearer"}


@contextmanager
def running_provider() -> Iterator[Provider]:
    """A provider on a port of this machine."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorization_endpoint":
                given = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(given))
                self.end_headers()
            elif parts.path == "/jwks_uri":
                self.answer(provider.keys())
            else:
                self.answer(provider.description())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            self.answer(provider.token(given, self.headers.get("Authorization", "")))

        def answer(self, content: dict[str, Any] | None) -> None:
            self.send_response(400 if content is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content or {"error": "invalid_grant"}).encode())

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
