"""The settings of the server over HTTP."""

from __future__ import annotations

from pathlib import Path

from penstock.control.documents.service import Service
from penstock.control.registry import Registry
from penstock.settings import load
from tests.api.kit import running


def test_settings_are_told_with_their_origin_and_without_secrets(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        'workers = 0\n[spark]\n"sql.shuffle.partitions" = 7\n"hadoop.fs.s3a.secret.key" = "hush"\n'
        '[defaults.sink]\npassword = "hush"\n'
    )
    loaded = load({"port": 0, "home": tmp_path}, env={"PENSTOCK_LOG_LEVEL": "error"}, cwd=tmp_path)
    registry = Registry.open(loaded.settings.registry_url)
    with running(Service(loaded, registry)) as api:
        answer = api.client.get("/settings")
    registry.close()
    assert "hush" not in answer.text
    body = answer.json()
    assert (body["file"], body["warnings"]) == (str(file), [])
    assert set(body["versions"]) == {"penstock", "python", "java", "spark"}
    shown = {each["name"]: each for each in body["settings"]}

    def of(name: str, *fields: str) -> list[object]:
        return [shown[name][field] for field in fields]

    assert of("workers", "value", "default", "variable") == [0, 1, "PENSTOCK_WORKERS"]
    assert shown["workers"]["origin"] == f"penstock.toml ({file})"
    assert shown["home"]["value"] == str(tmp_path)
    assert of("port", "value", "origin") == [0, "command line"]
    assert of("log.level", "value", "origin", "choices") == [
        "error",
        "PENSTOCK_LOG_LEVEL",
        ["debug", "info", "warning", "error"],
    ]
    assert of("spark.master", "value", "default", "origin", "variable") == [
        "local[*]",
        "local[*]",
        "built-in",
        "PENSTOCK_SPARK_MASTER",
    ]
    partitions = of("spark.sql.shuffle.partitions", "value", "default", "variable")
    assert partitions == ["7", None, "PENSTOCK_SPARK_SQL_SHUFFLE_PARTITIONS"]
    assert of("spark.hadoop.fs.s3a.secret.key", "value") == ["***"]
    assert of("defaults.sink.password", "value", "variable") == ["***", "PENSTOCK_DEFAULTS_SINK"]
    assert all(each["description"] for each in shown.values())
