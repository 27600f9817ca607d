import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import type { AnyDocument, Kind } from "#/api/kinds";
import { VERBS } from "#/flows/useControls";
import { TOGGLES, toggleOf, useToggles } from "./bulk";

/** Pauses, resumes and starts the flows that are selected, as far as that makes sense for each. */
export function BulkActions({ kind, selected }: { kind: Kind; selected: readonly AnyDocument[] }) {
  const { toggle, under } = useToggles(kind);
  if (under !== null) {
    return (
      <Button variant="default" disabled role="status">
        {under}
      </Button>
    );
  }
  return TOGGLES.map((verb) => {
    const some = selected.filter((document) => toggleOf(document) === verb);
    if (some.length === 0) return null;
    const Icon = verb === "pause" ? IconPlayerPause : IconPlayerPlay;
    return (
      <Button
        key={verb}
        variant="light"
        leftSection={<Icon size={16} />}
        onClick={() => void toggle(verb, some)}
      >
        {VERBS[verb].label} {some.length}
      </Button>
    );
  });
}
