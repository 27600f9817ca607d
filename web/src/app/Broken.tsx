import { Button, Group } from "@mantine/core";
import { Link, useRouteError } from "react-router";
import { Empty, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";

/** A page that has failed: the others still work. */
export function Broken() {
  const error = useRouteError();
  return (
    <Page title="This page has failed">
      <Failure error={error} />
      <Group>
        <Button onClick={() => window.location.reload()}>Load it again</Button>
        <Button component={Link} to="/" variant="default">
          To the overview
        </Button>
      </Group>
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="Nothing here">
      <Empty
        title="There is no such page"
        action={
          <Button component={Link} to="/">
            To the overview
          </Button>
        }
      >
        Ctrl K finds every document and every page by its name.
      </Empty>
    </Page>
  );
}
