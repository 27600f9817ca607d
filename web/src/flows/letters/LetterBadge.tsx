import { Badge } from "@mantine/core";
import type { AnyDocument, Kind } from "#/api/kinds";
import { count } from "#/components/format";
import { useNewLetters } from "./api";

/** How many dead letters nobody has dealt with; nothing if there are none. */
export function LetterBadge({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const { data } = useNewLetters(kind, document.id);
  if (!data) return null;
  return (
    <Badge size="sm" color="red" variant="light" aria-label={`${data} new`}>
      {count(data)}
    </Badge>
  );
}
