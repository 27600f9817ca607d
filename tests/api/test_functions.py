from __future__ import annotations

from penstock.control.documents.service import Service
from tests.api.kit import codes, running


def test_nobody_can_tell_functions_while_no_worker_is_ready(service: Service) -> None:
    with running(service) as api:
        refused = api.client.get("/functions")
    assert (refused.status_code, codes(refused)) == (503, ["no_worker"])
