"""A REST catalog of Iceberg for tests: the servlet of Iceberg's own tests, over a catalog in SQLite."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.daemon import Daemon
from tests.java import CACHE
from tests.servers import free_port, unavailable

ICEBERG, JETTY, SQLITE, HADOOP, SLF4J = "1.9.1", "11.0.24", "3.46.0.0", "3.4.2", "2.0.16"

DEPENDENCIES = {
    "org.apache.iceberg:iceberg-api": ICEBERG,
    "org.apache.iceberg:iceberg-core": ICEBERG,
    "org.apache.iceberg:iceberg-core:tests": ICEBERG,
    "org.apache.hadoop:hadoop-client-api": HADOOP,
    "org.apache.hadoop:hadoop-client-runtime": HADOOP,
    "org.eclipse.jetty:jetty-servlet": JETTY,
    "org.xerial:sqlite-jdbc": SQLITE,
    "org.slf4j:slf4j-nop": SLF4J,
}

SERVER = """\
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class CatalogServer {
  public static void main(String[] args) throws Exception {
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize("lake", Map.of("uri", args[1], "warehouse", args[2]));
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
"""


class RestCatalog(Daemon):
    """A running server."""

    package = program = "java"
    patience_s = 60.0

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.port = free_port()
        (home / "CatalogServer.java").write_text(SERVER)

    @classmethod
    def prepare(cls) -> None:
        _jars()

    def command(self) -> Sequence[str]:
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        place = [str(self.port), f"jdbc:sqlite:{self.database}", f"file://{self.home}/files"]
        return ["java", *quick, "-cp", f"{_jars()}/*", str(self.home / "CatalogServer.java"), *place]

    def answers(self) -> bool:
        return self.accepts(self.port)

    @property
    def spec(self) -> dict[str, str]:
        """The catalog as a connector declares it."""
        return {"type": "rest", "uri": f"http://127.0.0.1:{self.port}"}

    @property
    def database(self) -> Path:
        """The database that it keeps its tables in."""
        return self.home / "catalog.db"


def _jars() -> Path:
    """The jars of the server, fetched once."""
    target = CACHE / f"iceberg-catalog-{ICEBERG}"
    if (target / "done").exists():
        return target
    if not shutil.which("mvn"):
        unavailable("no Maven to fetch an Iceberg catalog with (Debian: sudo apt-get install -y maven)")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "pom.xml").write_text(_pom())
        part = target.with_suffix(f".{os.getpid()}")
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"Maven could not fetch an Iceberg catalog: {done.stdout[-2000:]}")
        (part / "done").touch()
        if not target.exists():
            part.rename(target)
    return target


def _pom() -> str:
    made = []
    for name, version in DEPENDENCIES.items():
        group, artifact, *classifier = name.split(":")
        of = "".join(f"<classifier>{each}</classifier>" for each in classifier)
        ids = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{of}"
        made.append(f"<dependency>{ids}</dependency>")
    head = "<groupId>penstock</groupId><artifactId>catalog</artifactId><version>1</version>"
    return (
        f"<project><modelVersion>4.0.0</modelVersion>{head}"
        f"<dependencies>{''.join(made)}</dependencies></project>"
    )
