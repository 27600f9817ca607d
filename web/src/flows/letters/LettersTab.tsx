import { Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useSearchParams } from "react-router";
import type { AnyDocument, Kind } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { count } from "#/components/format";
import { Empty, Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { ANY, type Choice, type LetterFilter, useLetters } from "./api";
import { LetterDrawer } from "./LetterDrawer";
import { LetterFilters } from "./LetterFilters";
import { LetterPager } from "./LetterPager";
import { LettersToolbar } from "./LettersToolbar";
import { LetterTable } from "./LetterTable";
import { ObstacleAlert } from "./ObstacleAlert";
import { ReplayLettersDialog } from "./ReplayLettersDialog";

/** What a flow could not process: read, edited, replayed or discarded. */
export default function LettersTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const { id } = document;
  const [search, setSearch] = useSearchParams();
  const [filter, setFilter] = useState<LetterFilter>(ANY);
  const [asked] = useDebouncedValue(filter, 250);
  const [pages, setPages] = useState<(number | null)[]>([null]);
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [replaying, setReplaying] = useState<Choice | null>(null);
  const found = useLetters(kind, id, asked, pages.at(-1)!);
  const opened = search.get("letter");
  const mayRepair = useAllowed("operator");
  const open = (offset: number | null) =>
    setSearch(offset === null ? { tab: "letters" } : { tab: "letters", letter: String(offset) });

  const choose = (next: LetterFilter) => {
    setFilter(next);
    setPages([null]);
    setSelected(new Set());
  };
  if (found.error && !found.data)
    return <Failure error={found.error} title="Could not load the dead letters" />;
  if (!found.data) return <Loading what="Loading dead letters" />;
  const { letters, total, next } = found.data;
  return (
    <Stack gap="sm">
      {total === 0 ? (
        <Empty title="No dead letters">
          Events that can't be processed are kept here with the reason. You can edit and replay them. No event
          has failed so far.
        </Empty>
      ) : (
        <>
          <LetterFilters filter={filter} onChange={choose} found={found.data} />
          {mayRepair && (
            <LettersToolbar
              kind={kind}
              id={id}
              letters={letters}
              selected={selected}
              onReplay={setReplaying}
              filter={asked}
              onDone={() => setSelected(new Set())}
            />
          )}
          <ObstacleAlert letters={letters} />
          {letters.length === 0 ? (
            <Text c="dimmed" size="sm">
              No dead letter matches the filter ({count(total)} in total).
            </Text>
          ) : (
            <LetterTable
              letters={letters}
              selected={selected}
              onSelect={mayRepair ? setSelected : undefined}
              onOpen={open}
            />
          )}
          <LetterPager
            pages={pages}
            next={next}
            onChange={(to) => {
              setPages(to);
              setSelected(new Set());
            }}
          />
        </>
      )}
      <LetterDrawer
        kind={kind}
        id={id}
        offset={opened === null ? null : Number(opened)}
        onClose={() => open(null)}
        onReplay={setReplaying}
      />
      <ReplayLettersDialog kind={kind} id={id} choice={replaying} onClose={() => setReplaying(null)} />
    </Stack>
  );
}
