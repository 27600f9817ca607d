import { Button, Group } from "@mantine/core";
import { Link, useRouteError } from "react-router";
import { Empty, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";

/** A page that has failed: the others still work. */
export function Broken() {
  const error = useRouteError();
  return (
    <Page title="This page could not be displayed">
      <Failure error={error} />
      <Group>
        <Button onClick={() => window.location.reload()}>Load it again</Button>
        <Button component={Link} to="/" variant="default">
          Go to the overview
        </Button>
      </Group>
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty
        title="This page doesn't exist"
        action={
          <Button component={Link} to="/">
            Go to the overview
          </Button>
        }
      >
        Press Ctrl K to find any page or document by name.
      </Empty>
    </Page>
  );
}
