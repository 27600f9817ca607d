"""Parameters that routes of several modules share."""

from typing import Annotated

from fastapi import Header, Path

Name = Annotated[str, Path(description="The name or the id.", min_length=1, max_length=128)]
IfMatch = Annotated[str | None, Header(description="The ETag of the revision that the change is meant for.")]
