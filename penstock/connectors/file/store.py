"""Object stores behind Hadoop's file systems: settings, jars, and the errors they raise."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from pydantic import Field, model_validator

from penstock.connectors.file.paths import is_local
from penstock.connectors.probe import unreachable
from penstock.errors import Invalid, PenstockError, Problem, Unavailable
from penstock.spark.driver import file_system_class
from penstock.spark.jars import use_jars
from penstock.spark.java_classes import java_class
from penstock.specs.base import Spec
from penstock.specs.reach import ClientOptions, ServerUrl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = Path(__file__).with_name("java")

S3_JARS = "s3"
"""The set of `penstock.spark.jars` that `s3a://` needs."""

OBJECT_STORES = ("s3a", "gs", "oss", "cosn", "obs")
"""Schemes of stores that can't rename a directory atomically."""

S3 = {
    # Few attempts: the sink and the flow have their own retries, with backoff and a deadline.
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.s3a.retry.interval": "200ms",
    "fs.s3a.connection.establish.timeout": "5s",
    # Hadoop's default reads through a second client, on Netty.
    "fs.s3a.input.stream.type": "classic",
    # Fewer requests, and no empty objects as directory markers.
    "fs.s3a.performance.flags": "create,delete,mkdir",
}
"""Settings of the S3 client that differ from Hadoop's defaults."""

QUICK = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "0", "fs.s3a.connection.timeout": "5s"}
"""Settings for a connection test, which has to finish within seconds."""

AMAZON = "s3.amazonaws.com"


class Store(Spec):
    """Access to an object store. The fields are for S3; configure other stores with `options`."""

    endpoint: ServerUrl | None = Field(
        default=None,
        pattern=r"^(https?://[^\s/]+/?|.*\$\{.*)$",
        description="URL of a store other than Amazon's, such as `http://minio.example:9000`.",
    )
    region: str | None = Field(default=None, min_length=1, description="Region of the bucket.")
    access_key: str | None = Field(
        default=None,
        min_length=1,
        description="Access key id. Absent: the credentials of the worker's environment or machine.",
    )
    secret_key: str | None = Field(
        default=None, description="Secret access key; use `${NAME}` to read it from an environment variable."
    )
    session_token: str | None = Field(
        default=None, description="Token of temporary credentials; use `${NAME}`."
    )
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is part of the URL path instead of the host. Absent: only with "
        "`endpoint`.",
    )
    options: ClientOptions = Field(
        default_factory=dict,
        description="Additional settings of the Hadoop file system, such as `fs.azure.account.key`; use "
        "`${NAME}` for secrets.",
    )

    @model_validator(mode="after")
    def _has_both(self) -> Store:
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key must be set together")
        if self.session_token is not None and self.access_key is None:
            raise ValueError("session_token needs access_key and secret_key")
        return self

    def s3_options(self) -> dict[str, str]:
        """The settings of Hadoop's S3 client."""
        auth = "org.apache.hadoop.fs.s3a."
        provider = "TemporaryAWSCredentialsProvider" if self.session_token else "SimpleAWSCredentialsProvider"
        path_style = self.endpoint is not None if self.path_style is None else self.path_style
        given = {
            "endpoint": self.endpoint,
            "endpoint.region": self.region or ("us-east-1" if self.endpoint else None),
            "access.key": self.access_key,
            "secret.key": self.secret_key,
            "session.token": self.session_token,
            "aws.credentials.provider": auth + provider if self.access_key else None,
            "path.style.access": "true" if path_style else None,
        }
        return {f"fs.s3a.{name}": value for name, value in given.items() if value is not None}


def scheme_of(path: str) -> str:
    """The scheme of a URL; empty for a local path."""
    return "" if is_local(path) else path.partition(":")[0].lower()


def is_object_store(path: str) -> bool:
    """Whether a path is in a store that has no atomic rename of directories."""
    return scheme_of(path) in OBJECT_STORES


def jars_for(path: str) -> str | None:
    """The set of jars that a path needs."""
    return S3_JARS if scheme_of(path) == "s3a" else None


def misplaced(path: str, store: Store | None) -> list[Problem]:
    """The problems with the combination of a path and its store settings."""
    scheme = scheme_of(path)
    if scheme in ("s3", "s3n"):
        message = f"Spark has no file system for '{scheme}://'"
        return [Problem(code="no_file_system", message=message, path="path", hint="write s3a://…")]
    if store is None:
        return []
    if not scheme:
        message = "'store' is only for object stores, but the path is local"
        return [Problem(code="not_an_object_store", message=message, path="store", hint="remove 'store'")]
    if scheme != "s3a" and (set_ := store.model_fields_set - {"options"}):
        message = f"'{min(set_)}' is a setting of s3a://, but the path is {scheme}://"
        hint = "use 'options' with the settings of that file system"
        return [Problem(code="not_an_object_store", message=message, path=f"store.{min(set_)}", hint=hint)]
    return []


def hadoop_options(
    spark: SparkSession, path: str, store: Store | None, quick: bool = False
) -> dict[str, str]:
    """The settings with which Spark and Hadoop open a path. Loads the jars and classes that it needs.

    `quick` is for a connection test, which uses a separate client.
    """
    scheme = scheme_of(path)
    if problems := misplaced(path, store):
        raise Invalid(*problems)
    if not scheme:
        return {}
    chosen: dict[str, str] = {}
    if scheme == "s3a":
        use_jars(spark, S3_JARS)
        chosen = {**S3, **(QUICK if quick else {}), **(store or Store()).s3_options()}
    elif store is None:
        return {}
    chosen |= store.options if store is not None else {}
    java_class(spark, JAVA / "SharedFileSystem.java")
    own = file_system_class(spark, scheme, chosen)
    if own is None:
        raise Invalid(_no_file_system(scheme))
    digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()
    return {
        **chosen,
        "penstock.store.class": own,
        "penstock.store.settings": digest,
        f"fs.{scheme}.impl": own if quick else "penstock.SharedFileSystem",
        f"fs.{scheme}.impl.disable.cache": "true",
    }


NO_USER = re.compile(r"[Aa]ccess [Kk]ey (ID|Id|id)")
"""Matches the error of a store for an unknown user."""

ERRORS = (
    (re.compile(r"UnknownStoreException|NoSuchBucket|bucket does not exist"), "bucket_not_found"),
    (
        re.compile(
            r"AccessDenied|Access Denied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|"
            r"NoAuthWithAWSException|NoAwsCredentials|Unable to load credentials|Status Code: 40[13]\b|"
            + NO_USER.pattern
        ),
        "store_login",
    ),
    (re.compile(r"AccessControlException"), "store_denied"),
    (re.compile(r"UnknownHostException"), "unknown_host"),
    (
        re.compile(
            r"ConnectException|Connection refused|ConnectTimeout|SocketTimeout|ApiCallTimeout|NoHttpResponse|"
            r"Connection reset|SSLException|SSLHandshake|Unable to execute HTTP request|"
            r"Acquire operation took longer|AWSServiceThrottled|AWSStatus500|Status Code: 50\d|"
            r"SafeModeException|StandbyException|could only be written to \d+ of"
        ),
        "store_unreachable",
    ),
    (re.compile(r"No FileSystem for scheme|UnsupportedFileSystemException"), "no_file_system"),
)
"""Patterns of exception texts, and the codes of their problems."""


def error_code(text: str) -> str | None:
    """The code of the problem behind the text of an exception; None if a store has not caused it."""
    return next((code for pattern, code in ERRORS if pattern.search(text)), None)


def explained(text: str, path: str, store: Store | None) -> PenstockError | None:
    """The error for the text of an exception at a path; None if it is unrelated to the object store."""
    scheme = scheme_of(path)
    code = error_code(text)
    if not scheme or code is None:
        return None
    place = urlparse(path).netloc
    where = (store.endpoint if store is not None else None) or (AMAZON if scheme == "s3a" else scheme)
    if code == "no_file_system":
        return Invalid(_no_file_system(scheme))
    if code == "bucket_not_found":
        message, hint = f"there is no bucket '{place}' at {where}", "check the name, or create the bucket"
        return Invalid(Problem(code=code, message=message, path="path", hint=hint))
    if code == "store_login":
        message = f"{where} denies access to '{place}'"
        hint = "check access_key and secret_key, and the permissions of the user on the bucket"
        return Invalid(Problem(code=code, message=message, path="store", hint=hint))
    if code == "store_denied":
        message, hint = f"the worker may not access {path}", "change the permissions of the directory"
        return Invalid(Problem(code=code, message=message, path="path", hint=hint))
    message, hint = (
        f"no response from {where}",
        "check the endpoint, and that it is reachable from the worker",
    )
    return Unavailable(Problem(code=code, message=message, path="store.endpoint", hint=hint))


def unanswered(store: Store | None) -> list[Problem]:
    """A problem if the endpoint of the store accepts no connections."""
    if store is None or store.endpoint is None:
        return []
    url = urlparse(store.endpoint)
    port = url.port or (443 if url.scheme == "https" else 80)
    return unreachable([f"{url.hostname}:{port}"], "store.endpoint")


def _no_file_system(scheme: str) -> Problem:
    message = f"Spark has no file system for '{scheme}://'"
    hint = "add the jar of its Hadoop file system to spark.jars, such as hadoop-azure or gcs-connector"
    return Problem(code="no_file_system", message=message, path="path", hint=hint)
