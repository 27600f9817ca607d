import type { ReactNode } from "react";
import type { Kind } from "#/api/kinds";
import { Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import type { JsonSchema } from "#/forms/SchemaForm";
import { type Opened, useOpened } from "./opening";
import { useRoot } from "./schemas";
import type { Value } from "./yaml";

interface Props {
  kind: Kind;
  /** What a new document begins with. */
  blank: Value;
  children: (opened: Opened, root: JsonSchema) => ReactNode;
}

/** Gets what a form needs before it can be shown: the document and the schemas. */
export function Opening({ kind, blank, children }: Props) {
  const opened = useOpened(kind, blank);
  const { root, error } = useRoot();
  const failure = opened.error ?? error;
  if (failure) {
    return (
      <Page title={`Could not load the ${kind.one}`}>
        <Failure error={failure} />
      </Page>
    );
  }
  if (!opened.data || !root) return <Loading />;
  return children(opened.data, root);
}
