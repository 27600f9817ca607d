from pathlib import Path

import pytest

from penstock.errors import Invalid, Problem
from penstock.settings import Loaded, Settings, catalogue, load


def write(directory: Path, text: str, name: str = "penstock.toml") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(text)
    return file


def refused(**arguments: object) -> dict[str | None, Problem]:
    with pytest.raises(Invalid) as caught:
        load(**arguments)  # type: ignore[arg-type]
    return {problem.path: problem for problem in caught.value.problems}


def where(loaded: Loaded, name: str) -> tuple[object, str]:
    return loaded.origins[name].value, str(loaded.origins[name])


def test_built_ins(tmp_path: Path) -> None:
    loaded = load({}, {}, tmp_path)
    settings = loaded.settings
    assert settings.home == tmp_path / ".penstock"
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8080, 1)
    assert (settings.worker.lease_ms, settings.worker.drain_ms) == (10_000, 30_000)
    assert (settings.log.level, settings.log.format) == ("info", "text")
    assert settings.spark == {"spark.master": "local[*]"}
    assert settings.registry_url == f"sqlite:///{tmp_path}/.penstock/registry.db"
    assert {str(origin) for origin in loaded.origins.values()} == {"built-in"}
    assert loaded.warnings == []
    assert loaded.file is None


def test_later_layers_win_and_say_so(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1\nhost = "file"\nworkers = 3\n[worker]\nlease_ms = 5\n')
    loaded = load(
        {"port": 3, "worker.drain_ms": None}, {"PENSTOCK_PORT": "2", "PENSTOCK_WORKERS": "4"}, tmp_path
    )
    assert where(loaded, "port") == (3, "command line")
    assert where(loaded, "workers") == (4, "PENSTOCK_WORKERS")
    assert where(loaded, "host") == ("file", f"penstock.toml ({file})")
    assert where(loaded, "worker.lease_ms") == (5, f"penstock.toml ({file})")
    assert where(loaded, "worker.drain_ms") == (30_000, "built-in")
    assert loaded.settings.port == 3
    assert loaded.file == file


def test_every_setting_has_an_origin_and_a_description(tmp_path: Path) -> None:
    names = {setting.path for setting in catalogue()}
    assert names - set(load({}, {}, tmp_path).origins) == {"spark"}
    assert all(setting.description for setting in catalogue())
    assert {s.path: s.choices for s in catalogue()}["log.format"] == ("text", "json")


SAMPLES = {
    "log.format": "json",
    "worker.starts": "2",
    "worker.heartbeat_ms": "500",
    "worker.capacity": "5",
    "kafka.replication": "3",
    "kafka.sasl.mechanism": "PLAIN",
    "auth.oidc.default_role": "viewer",
}
"""Values of settings that have no default, and are more than a text."""

TOGETHER = {
    "tls.certificate": "PENSTOCK_TLS_KEY",
    "tls.key": "PENSTOCK_TLS_CERTIFICATE",
    "worker.certificate": "PENSTOCK_WORKER_KEY",
    "worker.key": "PENSTOCK_WORKER_CERTIFICATE",
    "auth.oidc.issuer": "PENSTOCK_AUTH_OIDC_CLIENT_ID",
}
"""The variable without which a setting has no meaning."""


@pytest.mark.parametrize("setting", [s for s in catalogue() if not isinstance(s.default, dict)])
def test_every_plain_setting_can_come_from_its_variable(setting, tmp_path: Path) -> None:
    default = "sqlite:///x.db" if setting.default is None else str(setting.default)
    given = {setting.variable: SAMPLES.get(setting.path, default)}
    if (other := TOGETHER.get(setting.path)) is not None:
        given[other] = "file.pem"
    assert str(load({}, given, tmp_path).origins[setting.path]) == setting.variable


def test_a_heartbeat_is_at_most_half_of_the_lease(tmp_path: Path) -> None:
    variables = {"PENSTOCK_WORKER_LEASE_MS": "1000", "PENSTOCK_WORKER_HEARTBEAT_MS": "501"}
    with pytest.raises(Invalid, match="heartbeat_ms must be at most half of lease_ms") as raised:
        load({}, variables, tmp_path)
    assert [problem.path for problem in raised.value.problems] == ["worker"]
    variables["PENSTOCK_WORKER_HEARTBEAT_MS"] = "500"
    assert load({}, variables, tmp_path).settings.worker.heartbeat_ms == 500


def test_labels_of_a_worker_come_from_all_layers(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('worker.labels = {zone = "a", disk = "ssd"}')
    found = load({"worker.labels": {"zone": "b"}}, {"PENSTOCK_WORKER_LABELS": '{"rack": "7"}'}, tmp_path)
    assert found.settings.worker.labels == {"zone": "b", "disk": "ssd", "rack": "7"}


def test_registry_url(tmp_path: Path) -> None:
    loaded = load({}, {"PENSTOCK_REGISTRY_URL": "postgresql+psycopg://db/penstock"}, tmp_path)
    assert loaded.settings.registry_url == "postgresql+psycopg://db/penstock"


def test_spark_properties_are_flattened(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        [spark]
        master = "spark://host:7077"
        sql.shuffle.partitions = 4
        "sql.streaming.stopTimeout" = "10s"
        "spark.executor.memoryOverhead" = "1g"
        speculation = true
        "speculation.interval" = 0.5
        """,
    )
    loaded = load({"spark.sql.ansi.enabled": False}, {}, tmp_path)
    assert loaded.settings.spark == {
        "spark.master": "spark://host:7077",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.executor.memoryOverhead": "1g",
        "spark.speculation": "true",
        "spark.speculation.interval": "0.5",
        "spark.sql.ansi.enabled": "false",
    }
    assert where(loaded, "spark.sql.ansi.enabled") == ("false", "command line")


def test_a_spark_property_at_the_top_level_may_be_quoted(tmp_path: Path) -> None:
    write(tmp_path, '"spark.sql.shuffle.partitions" = 8')
    assert load({}, {}, tmp_path).settings.spark["spark.sql.shuffle.partitions"] == "8"


def test_spark_variables_keep_the_spelling_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'spark.executor.memoryOverhead = "1g"')
    env = {
        "PENSTOCK_SPARK_EXECUTOR_MEMORYOVERHEAD": "2g",
        "PENSTOCK_SPARK_SQL_SHUFFLE_PARTITIONS": "2",
        "PENSTOCK_SPARK_MASTER": "local[1]",
    }
    assert load({}, env, tmp_path).settings.spark == {
        "spark.executor.memoryOverhead": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.master": "local[1]",
    }


def test_defaults_are_merged_field_by_field(tmp_path: Path) -> None:
    write(tmp_path, "[defaults.stream.wal]\nsync = true\nmax_segments = 8\n[defaults.stream.buffer]\n")
    env = {"PENSTOCK_DEFAULTS_STREAM": '{"wal": {"max_segments": 9}, "schema": null}'}
    loaded = load({}, env, tmp_path)
    assert loaded.settings.defaults.stream == {
        "wal": {"sync": True, "max_segments": 9},
        "buffer": {},
        "schema": None,
    }
    assert loaded.settings.defaults.pipeline == {}
    assert str(loaded.origins["defaults.stream.wal.max_segments"]) == "PENSTOCK_DEFAULTS_STREAM"


def test_a_default_can_be_replaced_by_another_shape(tmp_path: Path) -> None:
    write(tmp_path, "[defaults.stream.wal]\nsync = true\n")
    assert load({"defaults.stream": {"wal": 1}}, {}, tmp_path).settings.defaults.stream == {"wal": 1}


def test_an_empty_table_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "[registry]\n[spark]\n[defaults]\n")
    assert load({}, {}, tmp_path).settings == load({}, {}, tmp_path / "elsewhere").settings.model_copy(
        update={"home": tmp_path / ".penstock"}
    )


def test_the_file_is_looked_for_here_then_at_home(tmp_path: Path) -> None:
    at_home = write(tmp_path / "data", "port = 1")
    assert load({"home": "data"}, {}, tmp_path).file == at_home
    assert load({}, {"PENSTOCK_HOME": str(tmp_path / "data")}, tmp_path).settings.port == 1
    here = write(tmp_path, "port = 2")
    assert load({"home": "data"}, {}, tmp_path).file == here


def test_the_file_can_be_named(tmp_path: Path) -> None:
    write(tmp_path, "port = 1")
    named = write(tmp_path / "etc", 'home = "data"', "other.toml")
    loaded = load({}, {"PENSTOCK_CONFIG": "etc/other.toml"}, tmp_path)
    assert loaded.file == named
    assert loaded.settings.port == 8080
    assert loaded.settings.home == tmp_path / "etc" / "data"


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    assert "No such file" in refused(env={"PENSTOCK_CONFIG": "gone.toml"}, cwd=tmp_path)[None].message


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        'prot = 1\nworkers = "many"\nregistry = 5\n[log]\nlevle = "info"\n[spark]\nmaster = ["a"]\n[extra]\n',
    )
    problems = refused(
        overrides={"port": 70000, "worker.leese_ms": 1},
        env={"PENSTOCK_LOG_FORMAT": "xml", "PENSTOCK_DEFAULTS_SINK": "[1]"},
        cwd=tmp_path,
    )
    assert {path: problem.code for path, problem in problems.items()} == {
        "prot": "unknown_setting",
        "extra": "unknown_setting",
        "log.levle": "unknown_setting",
        "worker.leese_ms": "unknown_setting",
        "workers": "invalid_value",
        "registry": "invalid_value",
        "spark.master": "invalid_value",
        "port": "invalid_value",
        "log.format": "invalid_value",
        "defaults.sink": "invalid_value",
    }
    assert problems["prot"].hint == f"set by penstock.toml ({file}); did you mean 'port'?"
    assert problems["log.levle"].hint == f"set by penstock.toml ({file}); did you mean 'level'?"
    assert problems["worker.leese_ms"].hint == "set by command line; did you mean 'lease_ms'?"
    assert problems["port"].hint == "set by command line"
    assert problems["log.format"].message == "must be 'text' or 'json', not 'xml'"
    assert problems["log.format"].hint == "set by PENSTOCK_LOG_FORMAT"


def test_broken_toml_is_told_with_the_rest(tmp_path: Path) -> None:
    file = write(tmp_path, "port = ")
    problems = refused(env={"PENSTOCK_PORT": "x"}, cwd=tmp_path)
    assert problems[None].message.startswith(f"{file} is not valid TOML")
    assert problems["port"].code == "invalid_value"


def test_unknown_variables_are_warned_about(tmp_path: Path) -> None:
    env = {
        "PENSTOCK_PROT": "1",
        "PENSTOCK_TEST_STRICT": "1",
        "PENSTOCK_SERVER": "http://localhost",
        "PENSTOCK_PORT": "",
        "OTHER": "x",
    }
    loaded = load({}, env, tmp_path)
    assert [(w.path, w.hint) for w in loaded.warnings] == [("PENSTOCK_PROT", "did you mean 'PENSTOCK_PORT'?")]
    assert loaded.settings.port == 8080


def test_levels_may_be_written_in_capitals(tmp_path: Path) -> None:
    assert load({}, {"PENSTOCK_LOG_LEVEL": "INFO"}, tmp_path).settings.log.level == "info"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]
