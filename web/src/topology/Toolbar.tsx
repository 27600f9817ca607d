import {
  Button,
  CloseButton,
  Group,
  Indicator,
  Pill,
  Popover,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
} from "@mantine/core";
import { IconFilter, IconSearch } from "@tabler/icons-react";
import { useMemo } from "react";
import { KIND_LIST } from "#/api/kinds";
import type { Topology } from "#/api/topology";
import { labelsOf } from "./graph";
import { Legend } from "./Legend";
import { Picks } from "./Picks";
import type { Chosen, View } from "./useChoice";

interface Props {
  whole: Topology;
  /** What was chosen of it. */
  graph: Topology;
  /** What of that is drawn or listed. */
  shown: Topology;
  chosen: Chosen;
  found: string | null;
  onFind: (key: string | null) => void;
  text: string;
  onText: (text: string) => void;
}

const STATUSES = [
  { value: "attention", label: "needs attention" },
  ...["failed", "active", "paused", "stopped", "completed"].map((value) => ({ value, label: value })),
];
const KINDS = KIND_LIST.map(({ name, title }) => ({ value: name, label: title }));

/** Find, filter, and how to show it. */
export function Toolbar({ whole, graph, shown, chosen, found, onFind, text, onText }: Props) {
  const { choice, view, set } = chosen;
  return (
    <Group gap="sm" justify="space-between">
      <Group gap="sm">
        {view === "graph" ? (
          <Finder graph={graph} found={found} onFind={onFind} />
        ) : (
          <TextInput
            w={240}
            aria-label="Find in the list"
            placeholder="Find by name, kind or type"
            leftSection={<IconSearch size={16} />}
            rightSection={text && <CloseButton size="sm" aria-label="Clear" onClick={() => onText("")} />}
            value={text}
            onChange={(event) => onText(event.currentTarget.value)}
          />
        )}
        <Filters whole={whole} chosen={chosen} />
        {choice.of !== null && (
          <Pill size="lg" withRemoveButton onRemove={() => set({ of: null })} removeButtonProps={REMOVE}>
            connected to {nameOf(whole, choice.of)}
          </Pill>
        )}
      </Group>
      <Group gap="sm">
        <Text size="sm" c="dimmed" role="status">
          {shown.nodes.length} of {whole.nodes.length}
        </Text>
        {view === "graph" && <Legend />}
        <SegmentedControl
          aria-label="View"
          value={view}
          onChange={(next) => set({ view: next as View })}
          data={[
            { value: "graph", label: "Graph" },
            { value: "list", label: "List" },
          ]}
        />
      </Group>
    </Group>
  );
}

const REMOVE = { "aria-label": "Show all documents", "aria-hidden": false, tabIndex: 0 };

const nameOf = ({ nodes }: Topology, key: string) => nodes.find((node) => node.key === key)?.name ?? key;

function Finder({ graph, found, onFind }: Pick<Props, "found" | "onFind"> & { graph: Topology }) {
  const options = useMemo(
    () =>
      graph.nodes
        .map(({ key, name, kind, owner, type }) => ({
          value: key,
          label: owner ? `${name} (${type ?? kind} of ${owner.split("/")[1]})` : `${name} (${kind})`,
        }))
        .sort((one, other) => one.label.localeCompare(other.label)),
    [graph],
  );
  return (
    <Select
      w={240}
      searchable
      clearable
      limit={30}
      aria-label="Find in the graph"
      placeholder="Find in the graph"
      nothingFoundMessage="No matches"
      leftSection={<IconSearch size={16} />}
      data={options}
      value={found}
      onChange={onFind}
      clearButtonProps={{ "aria-label": "Clear" }}
    />
  );
}

function Filters({ whole, chosen: { choice, narrowed, set, clear } }: { whole: Topology; chosen: Chosen }) {
  const labels = useMemo(() => [...new Set(whole.nodes.flatMap(labelsOf))].sort(), [whole]);
  const active = choice.kinds.length + choice.statuses.length + choice.labels.length;
  return (
    <Popover position="bottom-start" shadow="md" trapFocus returnFocus width={300}>
      <Indicator disabled={active === 0} label={active} size={18} color="penstock">
        <Popover.Target>
          <Button variant="default" leftSection={<IconFilter size={16} />}>
            Filter
          </Button>
        </Popover.Target>
      </Indicator>
      <Popover.Dropdown>
        <Stack gap="sm">
          <Picks label="Kinds" data={KINDS} value={choice.kinds} onChange={(kinds) => set({ kinds })} />
          <Picks
            label="Status"
            data={STATUSES}
            value={choice.statuses}
            onChange={(statuses) => set({ statuses })}
            hint="Includes directly connected documents."
          />
          {labels.length > 0 && (
            <Picks
              label="Labels"
              data={labels}
              value={choice.labels}
              onChange={(next) => set({ labels: next })}
            />
          )}
          <Switch
            label="Show sources and sinks inside pipelines"
            description="Those configured in the pipeline itself"
            checked={choice.ends}
            onChange={(event) => set({ ends: event.currentTarget.checked })}
          />
          <Button variant="subtle" size="compact-sm" disabled={!narrowed} onClick={clear}>
            Show all
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
