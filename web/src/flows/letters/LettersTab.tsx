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
import { ReplayLettersDialog } from "./ReplayLettersDialog";

/** What a flow could not process: read, mended, replayed or given up. */
export default function LettersTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const { id } = document;
  const [search, setSearch] = useSearchParams();
  const [filter, setFilter] = useState<LetterFilter>(ANY);
  const [asked] = useDebouncedValue(filter, 250);
  const [pages, setPages] = useState<number[]>([0]);
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [replaying, setReplaying] = useState<Choice | null>(null);
  const found = useLetters(kind, id, asked, pages.at(-1)!);
  const opened = search.get("letter");
  const mayRepair = useAllowed("operator");
  const open = (offset: number | null) =>
    setSearch(offset === null ? { tab: "letters" } : { tab: "letters", letter: String(offset) });

  const choose = (next: LetterFilter) => {
    setFilter(next);
    setPages([0]);
    setSelected(new Set());
  };
  if (found.error && !found.data) return <Failure error={found.error} title="The letters cannot be read" />;
  if (!found.data) return <Loading what="Reading the dead letters" />;
  const { letters, total, next } = found.data;
  return (
    <Stack gap="sm">
      {total === 0 ? (
        <Empty title="No dead letters">
          What it cannot process would be kept here, with the reason, and could be mended and replayed.
          Nothing has failed so far.
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
          {letters.length === 0 ? (
            <Text c="dimmed" size="sm">
              No letter is like this. There are {count(total)} in all.
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
