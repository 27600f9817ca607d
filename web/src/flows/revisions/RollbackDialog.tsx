import { useQueryClient } from "@tanstack/react-query";
import { put } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { done } from "#/components/notify";
import { PlanDialog } from "#/documents/PlanDialog";
import { rollBack, useRevision } from "./api";

interface Props {
  kind: Kind;
  document: AnyDocument;
  revision: number;
  onClose: () => void;
}

/** Goes back to an earlier revision, after what that would do was shown. */
export function RollbackDialog({ kind, document, revision, onClose }: Props) {
  const queries = useQueryClient();
  const wanted = useRevision(kind, document.id, revision);
  if (!wanted.data) return null;
  const apply = async (acceptReset: boolean, from?: string) => {
    const saved = await rollBack(kind, document.id, revision, acceptReset, from);
    put(queries, kind, saved);
    done(
      `Rolled back ${kind.one} ${saved.name} to revision ${revision}, saved as revision ${saved.revision}.`,
    );
    onClose();
  };
  return (
    <PlanDialog
      kind={kind}
      id={document.id}
      document={wanted.data.document}
      onApply={apply}
      onClose={onClose}
      title={`Roll back to revision ${revision}`}
      action="Roll back"
    />
  );
}
