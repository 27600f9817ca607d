import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { useAllowed, userOf, useSession } from "#/api/session";
import { Empty, Page } from "#/components/Page";
import type { Role } from "./types";

interface Props {
  /** The least role that may use what is inside. */
  needs: Role;
  otherwise?: ReactNode;
  children: ReactNode;
}

/** Shows its content to those whose role includes the one that it needs. */
export function Allowed({ needs, otherwise = null, children }: Props) {
  return useAllowed(needs) ? children : otherwise;
}

/** A page for those whose role includes the one that it needs; others are told which one that is. */
export function AllowedPage({ needs, children }: Omit<Props, "otherwise">) {
  return (
    <Allowed needs={needs} otherwise={<NotAllowed needs={needs} />}>
      {children}
    </Allowed>
  );
}

function NotAllowed({ needs }: { needs: Role }) {
  const user = userOf(useSession());
  return (
    <Page title="Not allowed">
      <Empty
        title={`This page needs the role ${needs}`}
        action={
          <Button component={Link} to="/">
            Go to the overview
          </Button>
        }
      >
        Your role is {user?.role ?? "not known"}. Ask an admin if you need another one.
      </Empty>
    </Page>
  );
}
