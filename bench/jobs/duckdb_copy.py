"""The job in DuckDB, for scale: no stream, no checkpoint, and no recovery after a kill."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb


def main(source: str, target: str) -> None:
    """Run the job."""
    Path(target).mkdir(parents=True)
    columns = (
        "{'id': 'BIGINT', 'user': 'VARCHAR', 'country': 'VARCHAR', 'amount': 'DOUBLE', 'at': 'VARCHAR', "
        "'ok': 'BOOLEAN', 'note': 'VARCHAR'}"
    )
    duckdb.sql(
        f"""COPY (
            SELECT id, "user", round(amount * 1.19, 2) AS gross, "at"
            FROM read_json('{source}/part-*.json', format = 'newline_delimited', columns = {columns})
            WHERE ok AND amount > 50
        ) TO '{target}/out.json' (FORMAT json)"""
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
