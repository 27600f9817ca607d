import { useState } from "react";
import { useLocation, useParams, useSearchParams } from "react-router";
import { kindAt, type Place } from "#/api/kinds";
import { useSchemas } from "#/api/openapi";
import { Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { useCatalogue } from "./catalogue";
import { dropDraft, readDraft } from "./drafts";
import { type Opened, useOpening } from "./opening";
import { Starts } from "./Starts";
import { Workshop } from "./Workshop";

/** Builds a pipeline or a task: new, as a copy, or one that exists. */
export default function BuilderPage({ place }: { place: Place }) {
  const { id } = useParams();
  const [search] = useSearchParams();
  const clone = search.get("clone");
  return <Opening key={`${place} ${id} ${clone}`} place={place} id={id ?? null} clone={clone} />;
}

function Opening({ place, id, clone }: { place: Place; id: string | null; clone: string | null }) {
  const kind = kindAt(place)!;
  const opening = useOpening(place, id, clone);
  const catalogue = useCatalogue();
  const schemas = useSchemas();
  const { state } = useLocation();
  const [started, setStarted] = useState<string | null>(() => {
    // Another page may bring the text of a new document along; a draft of it is newer.
    const text: string | null = id === null ? (state?.text ?? null) : null;
    return text !== null && readDraft(place, null)?.base === text ? null : text;
  });
  const error = opening.error ?? catalogue.error ?? schemas.error;
  const title = id === null ? `New ${kind.one}` : `Edit ${opening.data?.saved?.name ?? id}`;
  if (error) {
    return (
      <Page title={title}>
        <Failure error={error} />
      </Page>
    );
  }
  if (opening.data === undefined || !catalogue.data || !schemas.data) return <Loading />;
  const opened = started === null ? opening.data : begun(started);
  if (opened === null) {
    return (
      <Page title={title} about={kind.about}>
        <Starts place={place} onStart={setStarted} />
      </Page>
    );
  }
  return (
    <Workshop
      key={started}
      title={title}
      place={place}
      id={id}
      opened={opened}
      catalogue={catalogue.data}
      root={{ components: { schemas: schemas.data } }}
      onStartOver={() => {
        dropDraft(place, id);
        setStarted(null);
        void opening.refetch();
      }}
    />
  );
}

const begun = (text: string): Opened => ({
  text,
  goodText: text,
  base: text,
  tag: null,
  saved: null,
  draftOf: null,
});
