import { Badge, Button, Code, Switch } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { useAllowed, userOf, useSession } from "#/api/session";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { useTokens } from "./api";
import { NewTokenDialog } from "./NewTokenDialog";
import { TokenTable } from "./TokenTable";

/** Tokens of programs: one's own, and for an admin those of everybody. */
export default function TokensPage() {
  const me = userOf(useSession())?.name;
  const seesAll = useAllowed("admin");
  const [search, setSearch] = useSearchParams();
  const onlyMine = search.has("mine");
  const { data, error } = useTokens();
  const [creating, setCreating] = useState(false);
  const tokens = data?.filter((token) => !onlyMine || token.user === me);
  const create = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setCreating(true)}>
      Create a token
    </Button>
  );
  return (
    <Page
      title="Tokens"
      beside={tokens && <Badge variant="default">{tokens.length}</Badge>}
      about={
        <>
          Programs and the command line send a token as <Code>Authorization: Bearer TOKEN</Code>. A token
          belongs to the user who created it.
        </>
      }
      actions={tokens?.length ? create : undefined}
    >
      {seesAll && (
        <Switch
          label="Only my tokens"
          checked={onlyMine}
          onChange={({ currentTarget }) => setSearch(currentTarget.checked ? { mine: "" } : {})}
        />
      )}
      <Failure error={error} title="The tokens could not be loaded" />
      {tokens === undefined ? (
        !error && <Loading what="Loading the tokens" />
      ) : tokens.length === 0 ? (
        <Empty title="No tokens yet" action={create}>
          A script, a job or an application needs one to use the REST API.
        </Empty>
      ) : (
        <TokenTable tokens={tokens} showUsers={seesAll && !onlyMine} />
      )}
      {creating && <NewTokenDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}
