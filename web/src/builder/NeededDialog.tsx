import { Anchor, Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { problemsOf } from "#/api/client";
import { listKey, useDocuments } from "#/api/documents";
import { KINDS, keyOf, pageOf } from "#/api/kinds";
import { Loading } from "#/components/Page";
import { Problems } from "#/components/Problems";
import { importBundle } from "#/documents/bundle";
import type { Template } from "./templates";

interface Props {
  template: Template;
  onReady: () => void;
  onClose: () => void;
}

/** Offers to create the documents that a template refers to and that don't exist. */
export function NeededDialog({ template, onReady, onClose }: Props) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const existing = useExisting();
  const missing = existing && template.needs.filter(({ kind, id }) => !existing.has(`${kind}/${id}`));
  const create = async () => {
    setBusy(true);
    try {
      const text = JSON.stringify(missing!.map(({ document }) => document));
      if (missing!.length > 0) await importBundle({ text, mode: "merge", dryRun: false });
      for (const { kind } of missing!)
        void queries.invalidateQueries({ queryKey: listKey(KINDS[kind].place) });
      onReady();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={onClose} title={template.title} closeButtonProps={{ "aria-label": "Close" }}>
      {missing === undefined ? (
        <Loading />
      ) : (
        <Stack>
          <Text size="sm">This template uses these documents. Missing ones are created now.</Text>
          <List size="sm">
            {template.needs.map((each) => (
              <List.Item key={`${each.kind} ${each.id}`}>
                {KINDS[each.kind].one} <code>{each.id}</code>{" "}
                {missing.includes(each) ? (
                  "(will be created)"
                ) : (
                  <Anchor href={`/ui${pageOf(each.kind, each.id)}`} target="_blank" size="sm">
                    exists
                  </Anchor>
                )}
              </List.Item>
            ))}
          </List>
          <Problems problems={error === null ? [] : problemsOf(error)} title="Not created" />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button onClick={create} loading={isBusy} data-autofocus>
              {missing.length === 0 ? "Open" : "Create and open"}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

/** The keys of all documents that others can refer to; undefined while that is not known. */
function useExisting(): Set<string> | undefined {
  const lists = [
    useDocuments(KINDS.Stream),
    useDocuments(KINDS.Source),
    useDocuments(KINDS.Task),
    useDocuments(KINDS.Sink),
  ];
  if (lists.some(({ data }) => data === undefined)) return undefined;
  return new Set(lists.flatMap(({ data }) => data!.map(keyOf)));
}
