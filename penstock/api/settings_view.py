"""What this installation is: its settings and where each came from, and its versions."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.monitor.installation import shown_settings, versions
from penstock.errors import Problem


class SettingInfo(View):
    """A setting in force."""

    name: str
    value: Any = Field(description="Secrets are masked.")
    default: Any = Field(description="The built-in value.")
    origin: str = Field(description="What has set it: a file, a variable, the command line, or `built-in`.")
    variable: str = Field(description="The environment variable that sets it.")
    description: str
    choices: list[str] = Field(description="All values it can have; empty if they cannot be listed.")


class Versions(View):
    """What runs here."""

    penstock: str
    python: str
    java: str | None = Field(description="Null if no Java was found.")
    spark: str


class SettingsView(View):
    """The settings of the server, and the versions of what it runs on."""

    file: str | None = Field(description="The `penstock.toml` that was read.")
    settings: list[SettingInfo]
    warnings: list[Problem] = Field(description="What looks wrong about them.")
    versions: Versions


def settings_routes(service: Service) -> APIRouter:
    """The route for the settings."""
    router = APIRouter(tags=["settings"])

    @router.get(
        "/settings",
        summary="Get the settings of the server",
        description="Those of `penstock.toml`, `PENSTOCK_*` variables and the command line that started it. "
        "They are read when it starts.",
        operation_id="getSettings",
    )
    def settings() -> SettingsView:
        loaded = service.loaded
        return SettingsView(
            file=str(loaded.file) if loaded.file else None,
            settings=[SettingInfo.model_validate(vars(each)) for each in shown_settings(loaded)],
            warnings=loaded.warnings,
            versions=Versions.model_validate(versions()),
        )

    return router
