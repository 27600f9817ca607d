import { Badge, Group, HoverCard, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import {
  IconAlertTriangle,
  IconDatabaseExport,
  IconDatabaseImport,
  IconFilter,
  IconTransform,
} from "@tabler/icons-react";
import type { NodeProps } from "@xyflow/react";
import type { KeyboardEvent } from "react";
import { plural } from "#/components/format";
import type { Fields } from "#/documents/editing/yaml";
import classes from "./builder.module.css";
import { Columns } from "./Columns";
import { columnsAfter, countsByPart } from "./check";
import { type Builder, useBuilder } from "./context";
import type { PartNode as Node } from "./graph";
import { PartMenu } from "./PartMenu";
import type { Part } from "./parts";
import { Sides } from "./Sides";
import { summaryOf } from "./summary";

const ICONS = { source: IconDatabaseImport, step: IconTransform, sink: IconDatabaseExport };

/** A part on the canvas: what it is called, its type, what it does, and whether something is wrong with it. */
export function PartNode({ data: { part, way } }: NodeProps<Node>) {
  const builder = useBuilder();
  const { select, selected, check, isStale } = builder;
  const Icon = ICONS[part.group];
  const counts = countsByPart(check).get(part.key) ?? { errors: 0, warnings: 0 };
  const columns = columnsAfter(check, part);
  const mark = markOf(part, builder);
  const isSelected = selected === part.key;
  return (
    <Sides in={part.group !== "source"} out={part.group !== "sink"}>
      <div
        className={classes.part}
        data-selected={isSelected || undefined}
        data-wrong={counts.errors > 0 || undefined}
        data-group={part.group}
      >
        <HoverCard openDelay={350} position="bottom" withinPortal disabled={!columns} shadow="md">
          <HoverCard.Target>
            <UnstyledButton
              className={classes.face}
              aria-pressed={isSelected}
              aria-keyshortcuts="Alt+ArrowLeft Alt+ArrowRight Delete"
              data-part={part.key}
              onClick={() => select(part.key)}
              onKeyDown={(event) => press(event, part, builder)}
            >
              <VisuallyHidden>{WORDS[part.group]} </VisuallyHidden>
              <Group gap={6} wrap="nowrap">
                <Icon size={16} stroke={1.7} aria-hidden />
                <Text size="sm" fw={650} truncate className={classes.id}>
                  {part.group === "source" && part.type !== "stream" ? part.type : part.id}
                </Text>
                <Text size="xs" c="dimmed" className={classes.type}>
                  {part.type}
                </Text>
              </Group>
              <Text size="xs" c="dimmed" truncate ff="monospace" className={classes.line}>
                {summaryOf(part) || " "}
              </Text>
              {way?.label && (
                <Text size="xs" truncate className={classes.line} fs={way.chosen ? undefined : "italic"}>
                  <IconFilter size={11} aria-label="Receives events if" /> {way.label}
                </Text>
              )}
              <VisuallyHidden>
                {mark && `, ${mark}`}
                {wrong(counts)}
              </VisuallyHidden>
            </UnstyledButton>
          </HoverCard.Target>
          <HoverCard.Dropdown p="xs">
            <Columns columns={columns ?? []} title={`Columns after ${part.id}`} />
          </HoverCard.Dropdown>
        </HoverCard>
        <Group gap={4} className={classes.marks} aria-hidden>
          {mark && (
            <Badge size="sm" variant={mark === "required" ? "light" : "outline"} color="gray" tt="none">
              {mark}
            </Badge>
          )}
          {counts.errors + counts.warnings > 0 && (
            <Badge
              size="sm"
              color={counts.errors > 0 ? "red" : "yellow"}
              variant="filled"
              leftSection={<IconAlertTriangle size={11} aria-hidden />}
            >
              {counts.errors || counts.warnings}
            </Badge>
          )}
        </Group>
        {!isStale && <PartMenu part={part} />}
      </div>
    </Sides>
  );
}

const WORDS = { source: "Input", step: "Step", sink: "Output" };

const wrong = ({ errors, warnings }: { errors: number; warnings: number }) =>
  (errors ? `, ${plural(errors, "error")}` : "") + (warnings ? `, ${plural(warnings, "warning")}` : "");

/** Whether a batch waits for a sink. */
function markOf(part: Part, { place, value }: Builder): "required" | "best effort" | null {
  const mode = (value.spec?.commit_policy as Fields | null | undefined)?.mode;
  if (part.group !== "sink" || place === "tasks" || mode === "quorum") return null;
  return mode === "all" || part.value.required !== false ? "required" : "best effort";
}

function press(event: KeyboardEvent, part: Part, builder: Builder): void {
  const { group, index } = part;
  if (builder.isStale || group === "source") return;
  const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (event.altKey && step !== undefined) builder.move(group, index, index + step);
  else if (event.key === "Delete") builder.remove(part);
  else return;
  event.preventDefault();
}
