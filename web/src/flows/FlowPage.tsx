import { Button, Text } from "@mantine/core";
import { Link, useParams } from "react-router";
import { ApiError } from "#/api/client";
import { useDocument } from "#/api/documents";
import { kindAt, type Place } from "#/api/kinds";
import { capital } from "#/components/format";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { StatusBadge } from "#/components/StatusBadge";
import { FlowActions } from "./FlowActions";
import { FlowFacts } from "./FlowFacts";
import { FlowTabs } from "./FlowTabs";
import { FlowTrouble } from "./FlowTrouble";
import { useControls } from "./useControls";

/** The page of a pipeline, task, source or sink: how it is, what it has done, and what can be done with it. */
export default function FlowPage({ place }: { place: Place }) {
  const { id = "" } = useParams();
  // Another document is another page: nothing that was typed or chosen for one stays for the next.
  return <OneFlow key={`${place}/${id}`} place={place} id={id} />;
}

function OneFlow({ place, id }: { place: Place; id: string }) {
  const kind = kindAt(place)!;
  const found = useDocument(kind, id);
  const controls = useControls(kind, id);
  if (found.error) return <Missing place={place} id={id} error={found.error} />;
  if (!found.data) return <Loading what={`Loading the ${kind.one}`} />;
  const document = found.data;
  return (
    <Page
      title={document.name}
      beside={<StatusBadge status={document.status} phase={document.phase} />}
      about={document.metadata.description || undefined}
      actions={<FlowActions kind={kind} document={document} controls={controls} />}
    >
      <FlowFacts kind={kind} document={document} />
      {document.guarantee && (
        <Text size="sm" c="dimmed">
          Delivery guarantee: {document.guarantee}
        </Text>
      )}
      <FlowTrouble document={document} controls={controls} />
      <FlowTabs kind={kind} document={document} />
    </Page>
  );
}

function Missing({ place, id, error }: { place: Place; id: string; error: Error }) {
  const kind = kindAt(place)!;
  const gone = error instanceof ApiError && error.status === 404;
  return (
    <Page title={id}>
      {gone ? (
        <Empty
          title={`${capital(kind.one)} ${id} not found`}
          action={
            <Button component={Link} to={`/${place}`}>
              Show all {kind.title.toLowerCase()}
            </Button>
          }
        >
          It may have been deleted, or was never saved.
        </Empty>
      ) : (
        <Failure error={error} title="This page could not be loaded" />
      )}
    </Page>
  );
}
