import { Button, Group } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useMemo, useRef, useState } from "react";
import { Link, useLocation, useNavigate, useNavigationType, useSearchParams } from "react-router";
import { Allowed } from "#/access/Allowed";
import { useDocuments } from "#/api/documents";
import { type AnyDocument, type Kind, kindAt, type Place, pageOf } from "#/api/kinds";
import { useSchemas } from "#/api/openapi";
import { useAllowed } from "#/api/session";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { TOGGLES, type Toggle, useToggles } from "./bulk";
import type { RowAction } from "./cells";
import { filterKinds, HIDDEN } from "./columns";
import { DeleteDialog } from "./DeleteDialog";
import { type FilterModel, modelOf, withModel } from "./filters";
import { Grid } from "./Grid";
import { type Row, rowsOf } from "./rows";
import { Toolbar } from "./Toolbar";
import { UploadDialog } from "./UploadDialog";
import { ViewDrawer } from "./ViewDrawer";

/** The grid of all documents of a kind. */
export default function DocumentsPage({ place }: { place: Place }) {
  const kind = kindAt(place)!;
  return <Documents key={place} kind={kind} />;
}

function Documents({ kind }: { kind: Kind }) {
  const documents = useDocuments(kind);
  const rows = useRows(documents.data);
  const { search, setSearch, filters, isOwn, setFilters, clear } = useAddress(kind);
  const [times, setTimes] = useLocalStorage({ key: "penstock.times", defaultValue: false });
  const [hidden, setHidden] = useLocalStorage({
    key: `penstock.hidden.${kind.place}`,
    defaultValue: [...HIDDEN],
  });
  const [chosen, setChosen] = useState<AnyDocument[]>([]);
  // As they are now, not as they were when they were selected.
  const selected = useMemo(() => {
    const ids = new Set(chosen.map(({ id }) => id));
    return documents.data?.filter(({ id }) => ids.has(id)) ?? [];
  }, [chosen, documents.data]);
  const [doomed, setDoomed] = useState<readonly AnyDocument[] | null>(null);
  const [viewed, setViewed] = useState<AnyDocument | null>(null);
  const [uploading, setUploading] = useState(false);
  const mayEdit = useAllowed("editor");
  const mayOperate = useAllowed("operator");
  const { toggle } = useToggles(kind);
  const navigate = useNavigate();
  const open = ({ kind: name, id }: AnyDocument) => navigate(pageOf(name, id));
  const act = (action: RowAction, document: AnyDocument) => {
    if (action === "view") setViewed(document);
    else if (action === "delete") setDoomed([document]);
    else if (TOGGLES.includes(action as Toggle)) void toggle(action as Toggle, [document]);
    else if (action === "edit") navigate(`${pageOf(document.kind, document.id)}/edit`);
    else navigate(`/${kind.place}/new?clone=${encodeURIComponent(document.id)}`);
  };
  return (
    <Page title={kind.title} about={kind.about}>
      <Toolbar
        kind={kind}
        search={search}
        onSearch={setSearch}
        filtered={search !== "" || Object.keys(filters).length > 0}
        onClear={clear}
        selected={selected}
        onDelete={() => setDoomed(selected)}
        onUpload={() => setUploading(true)}
        hidden={hidden}
        onHidden={setHidden}
      />
      <Failure error={documents.error} title={`Could not load ${kind.title.toLowerCase()}`} />
      {rows === undefined ? (
        documents.isPending && <Loading what={`Loading ${kind.title.toLowerCase()}`} />
      ) : rows.length === 0 ? (
        <Nothing kind={kind} onUpload={() => setUploading(true)} />
      ) : (
        <Grid
          isLoading={documents.isFetching && rows.length >= 1000}
          kind={kind}
          rows={rows}
          search={search}
          filters={filters}
          areOwn={isOwn}
          onFilters={setFilters}
          onSelected={setChosen}
          onOpen={open}
          onAct={act}
          mayEdit={mayEdit}
          mayOperate={mayOperate}
          hidden={hidden}
          times={times}
          onTimes={setTimes}
        />
      )}
      <ViewDrawer document={viewed} onClose={() => setViewed(null)} />
      <DeleteDialog documents={doomed} onClose={() => setDoomed(null)} />
      <UploadDialog opened={uploading} onClose={() => setUploading(false)} />
    </Page>
  );
}

function useRows(documents: AnyDocument[] | undefined): Row[] | undefined {
  const { data: schemas } = useSchemas();
  // biome-ignore lint/correctness/useExhaustiveDependencies: other defaults make other rows
  const known = useMemo(() => new WeakMap<AnyDocument, Row>(), [schemas]);
  return useMemo(() => documents && rowsOf(documents, schemas, known), [documents, schemas, known]);
}

/** Search and filters live in the address: it can be sent to somebody, and the way back leads to them. */
function useAddress(kind: Kind) {
  const [address, setAddress] = useSearchParams();
  const kinds = useMemo(() => filterKinds(kind), [kind]);
  const text = address.toString();
  const filters = useMemo(() => modelOf(new URLSearchParams(text), kinds), [text, kinds]);
  const now = useRef(address);
  now.current = address;
  const { state } = useLocation();
  const isReplaced = useNavigationType() === "REPLACE";
  const change = (next: URLSearchParams, own = false) => setAddress(next, { replace: true, state: { own } });
  return {
    /** Whether the grid itself has set these filters. It may have others by now: this page lags behind it. */
    isOwn: isReplaced && state?.own === true,
    search: address.get("q") ?? "",
    filters,
    setSearch: (search: string) => {
      const next = new URLSearchParams(now.current);
      if (search) next.set("q", search);
      else next.delete("q");
      change(next);
    },
    setFilters: (model: FilterModel) => change(withModel(now.current, model, kinds), true),
    clear: () => change(new URLSearchParams()),
  };
}

function Nothing({ kind, onUpload }: { kind: Kind; onUpload: () => void }) {
  return (
    <Empty
      title={`No ${kind.title.toLowerCase()} yet`}
      action={
        <Allowed needs="editor">
          <Group>
            <Button component={Link} to={`/${kind.place}/new`}>
              Create a {kind.one}
            </Button>
            <Button variant="default" onClick={onUpload}>
              Upload a bundle
            </Button>
          </Group>
        </Allowed>
      }
    >
      {kind.about}
    </Empty>
  );
}
