"""The settings of this installation with their origins, and its versions."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from penstock.api.views import View
from penstock.control.documents.service import Service
from penstock.control.monitor.installation import shown_settings, versions
from penstock.errors import Problem


class SettingInfo(View):
    """A setting that is in effect."""

    name: str
    value: Any = Field(description="Secrets are masked.")
    default: Any = Field(description="Default value.")
    origin: str = Field(
        description="Origin of the value: a file, a variable, the command line or `built-in`."
    )
    variable: str = Field(description="Environment variable for this setting.")
    description: str
    choices: list[str] = Field(description="Allowed values; empty if they can't be listed.")


class Versions(View):
    """Versions of Penstock and its runtime."""

    penstock: str
    python: str
    java: str | None = Field(description="Null if no Java was found.")
    spark: str


class SettingsView(View):
    """The settings of the server, and the versions of its software."""

    file: str | None = Field(description="The `penstock.toml` that was read.")
    settings: list[SettingInfo]
    warnings: list[Problem] = Field(description="Warnings about the settings.")
    versions: Versions


def settings_routes(service: Service) -> APIRouter:
    """The route for the settings."""
    router = APIRouter(tags=["settings"])

    @router.get(
        "/settings",
        summary="Get the server settings",
        description="Settings from `penstock.toml`, `PENSTOCK_*` variables and the command line, read when "
        "the server starts.",
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
