import { Button, Menu } from "@mantine/core";
import { IconDownload, IconX } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { bytes, count, plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { saveFile } from "#/documents/content";
import type { Where } from "./api";
import { collect, type Format, fileOf, MOST_BYTES, MOST_EVENTS } from "./download";

interface Props {
  id: string;
  range: Pick<Where, "position" | "to" | "where">;
  /** The fields that are columns of a CSV file; none: the whole event is one. */
  fields: readonly string[];
}

const TYPES = { jsonl: "application/x-ndjson", csv: "text/csv" } as const;

/** Saves the events of the range that meet the filter as a file. */
export function DownloadMenu({ id, range, fields }: Props) {
  const [words, setWords] = useState<string | null>(null);
  const abort = useRef<AbortController | null>(null);
  const save = async (format: Format) => {
    abort.current = new AbortController();
    setWords("0 events");
    try {
      const { events, more } = await collect(
        id,
        range,
        (found, searched) =>
          setWords(range.where ? `${count(found)} of ${plural(searched, "event")}` : plural(found, "event")),
        abort.current.signal,
      );
      saveFile(`${id}.${format}`, fileOf(events, format, fields), TYPES[format]);
      done(
        more
          ? `Saved the first ${plural(events.length, "event")}: a download has up to ${count(MOST_EVENTS)} events or ${bytes(MOST_BYTES)}.`
          : `Saved ${plural(events.length, "event")}.`,
      );
    } catch (error) {
      if ((error as Error).name !== "AbortError") failed("Could not download the events", error);
    } finally {
      setWords(null);
    }
  };
  if (words !== null) {
    return (
      <Button variant="default" onClick={() => abort.current?.abort()} leftSection={<IconX size={16} />}>
        Cancel download: {words}
      </Button>
    );
  }
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} />}>
          Download
        </Button>
      </Menu.Target>
      <Menu.Dropdown maw={280}>
        <Menu.Label>
          {range.where ? "Events that meet the filter" : "All events"} in the range, oldest first: up to{" "}
          {count(MOST_EVENTS)} events or {bytes(MOST_BYTES)}
        </Menu.Label>
        <Menu.Item onClick={() => void save("jsonl")}>JSON lines</Menu.Item>
        <Menu.Item onClick={() => void save("csv")}>CSV</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
