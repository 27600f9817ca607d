import { Anchor, SegmentedControl, Select, Stack, Tabs, Text } from "@mantine/core";
import { useMemo } from "react";
import { Link } from "react-router";
import { type KindName, pageOf } from "#/api/kinds";
import { done } from "#/components/notify";
import type { Fields } from "#/documents/editing/yaml";
import { Prose } from "#/forms/Prose";
import { SchemaForm } from "#/forms/SchemaForm";
import { addressOf } from "#/ingest/address";
import { HttpAddress } from "#/ingest/HttpAddress";
import { SendTab } from "#/ingest/SendTab";
import { ConnectionTest } from "./ConnectionTest";
import { beginning, type Component, entrySchema, type Role, retyped } from "./catalogue";
import { columnsAfter, columnsBefore } from "./check";
import { useBuilder } from "./context";
import { IdField } from "./IdField";
import { setPart } from "./model";
import type { Part } from "./parts";
import { scriptsThatName } from "./references";
import { TaskPartForm } from "./TaskPartForm";

const ROLES: Record<Part["group"], Role> = { source: "source", step: "processor", sink: "sink" };
const REGISTERED: Record<Part["group"], KindName> = { source: "Source", step: "Task", sink: "Sink" };

/** What can be said about a part: its type, its id, and the fields of its type. */
export function PartForm({ part }: { part: Part }) {
  const { place } = useBuilder();
  if (part.type === "task" || (place === "tasks" && part.group !== "step"))
    return <TaskPartForm part={part} />;
  const isHttp = part.group === "source" && part.type === "http";
  return isHttp ? <HttpPart part={part} /> : <ComponentForm part={part} />;
}

/** A source that events are sent to: beside its form, its address and a way to send events. */
function HttpPart({ part }: { part: Part }) {
  const { id, check } = useBuilder();
  const address = addressOf(part.value.path, id ?? check.id);
  const given = { columns: columnsAfter(check, part) ?? [], isSaved: id !== null };
  if (address === null) return <ComponentForm part={part} />;
  return (
    <Tabs defaultValue="settings" keepMounted={false}>
      <Tabs.List mb="md" aria-label="Source">
        <Tabs.Tab value="settings">Settings</Tabs.Tab>
        <Tabs.Tab value="send">Send</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="settings">
        <Stack gap="md">
          <HttpAddress address={address} {...given} />
          <ComponentForm part={part} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="send">
        <SendTab address={address} {...given} />
      </Tabs.Panel>
    </Tabs>
  );
}

function ComponentForm({ part }: { part: Part }) {
  const { place, value, catalogue, root, check, view, edit, isStale } = useBuilder();
  const role = ROLES[part.group];
  const components = { source: catalogue.sources, processor: catalogue.processors, sink: catalogue.sinks }[
    role
  ];
  const schema = useMemo(() => entrySchema(root, role, part.type), [root, role, part.type]);
  const context = useMemo(
    () => ({
      columns: columnsBefore(check, view, part),
      sinks: view.sinks.map((sink) => sink.id),
      readOnly: isStale,
    }),
    [check, view, part, isStale],
  );
  const set = (next: Fields, tag?: string) => edit((text) => setPart(text, place, part, next), tag);
  const become = (type: string) => set(retyped(part.value, type, entrySchema(root, role, type)));
  const rename = (id: string) => {
    set(withId(part.value, id));
    const scripts = part.group === "sink" ? scriptsThatName(value.spec ?? {}, part.id) : [];
    if (scripts.length > 0)
      done(`Check ${scripts.join(", ")}: references to '${part.id}' inside scripts are not updated`);
  };
  const component = components.find((each) => each.type === part.type);
  return (
    <Stack gap="md">
      {part.group !== "step" && (
        <SegmentedControl
          aria-label="Where the configuration is kept"
          value={part.type === "ref" ? "ref" : "inline"}
          disabled={isStale}
          data={[
            { value: "inline", label: "Configure here" },
            { value: "ref", label: `Use a registered ${part.group}` },
          ]}
          onChange={(choice) => {
            if (choice === "inline") set({ ...kept(part.value, ["ref"]), ...beginning(components[0]!.type) });
            else set({ ...only(part.value, schemaNames(entrySchema(root, role, "ref"))), ref: "" });
          }}
        />
      )}
      {part.type !== "ref" && <TypeChoice part={part} components={components} onChange={become} />}
      {component && <About component={component} />}
      {part.group !== "source" && <IdField part={part} onChange={rename} />}
      {schema ? (
        <SchemaForm
          schema={schema}
          root={root}
          value={part.value}
          path={part.path}
          problems={check.errors}
          hide={["id", "type"]}
          first={["ref", "required"]}
          context={context}
          onChange={(next) => set(next, part.key)}
        />
      ) : (
        <Text c="dimmed">There is no type '{part.type}': choose one, or fix it in the YAML.</Text>
      )}
      {component && role !== "processor" && (
        <ConnectionTest key={part.type} side={role} type={part.type} value={part.value} />
      )}
      {part.type === "ref" && typeof part.value.ref === "string" && part.value.ref && (
        <Anchor
          component={Link}
          to={pageOf(REGISTERED[part.group], part.value.ref)}
          size="sm"
          target="_blank"
        >
          Open {part.value.ref}
        </Anchor>
      )}
    </Stack>
  );
}

function TypeChoice(props: { part: Part; components: Component[]; onChange: (type: string) => void }) {
  const { part, components, onChange } = props;
  const { isStale } = useBuilder();
  return (
    <Select
      label="Type"
      searchable
      allowDeselect={false}
      disabled={isStale}
      value={part.type}
      data={components.map((each) => ({ value: each.type, label: each.type, disabled: Boolean(each.error) }))}
      onChange={(type) => type && type !== part.type && onChange(type)}
    />
  );
}

function About({ component }: { component: Component }) {
  return (
    <details>
      <Text component="summary" size="sm" c="dimmed" style={{ cursor: "pointer" }}>
        <Prose text={component.summary ?? ""} />
      </Text>
      <Text component="div" size="sm" mt="xs" style={{ whiteSpace: "pre-line" }}>
        <Prose text={(component.description ?? "").slice((component.summary ?? "").length).trim()} />
      </Text>
    </details>
  );
}

const withId = (value: Fields, id: string): Fields => {
  const { id: _, ...rest } = value;
  return id ? { id, ...rest } : rest;
};
const kept = (value: Fields, without: string[]): Fields =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !without.includes(name)));
const only = (value: Fields, names: string[]): Fields =>
  Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)));
const schemaNames = (schema: { properties?: object } | undefined) => Object.keys(schema?.properties ?? {});
