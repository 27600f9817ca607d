import type { Place } from "#/api/kinds";
import { type Fields, isFields, type Value } from "#/documents/editing/yaml";
import type { Group, View } from "./parts";

/** A part that is called otherwise now. */
export interface Renamed {
  group: Group;
  from: string;
  to: string;
}

/** The spec with every place that names a step or a sink by its old id changed: `route`, and the tests. */
export function followed(spec: Fields, renamed: readonly Renamed[]): Fields {
  const name = (group: Group) => (id: unknown) =>
    renamed.find((each) => each.group === group && each.from === id)?.to ?? id;
  const sink = name("sink");
  const step = name("step");
  const next: Fields = { ...spec };
  if (Array.isArray(spec.processors)) {
    next.processors = spec.processors.map((each: Fields) =>
      each.type === "route" ? route(each, sink) : each,
    );
  }
  if (Array.isArray(spec.tests)) next.tests = spec.tests.map((each: Fields) => test(each, step, sink));
  return next;
}

type Name = (id: unknown) => unknown;

function route(step: Fields, sink: Name): Fields {
  const next = { ...step };
  if (Array.isArray(step.rules)) {
    next.rules = step.rules.map((rule: unknown) =>
      isFields(rule) && Array.isArray(rule.sinks) ? { ...rule, sinks: rule.sinks.map(sink) } : rule,
    );
  }
  if (Array.isArray(step.default)) next.default = step.default.map(sink);
  return next;
}

function test(given: Fields, step: Name, sink: Name): Fields {
  const next = { ...given };
  if (isFields(given.given)) next.given = keys(given.given, step);
  if (!isFields(given.expect)) return next;
  const expect: Fields = { ...given.expect };
  if (isFields(expect.sinks)) expect.sinks = keys(expect.sinks, sink);
  if (isFields(expect.steps)) expect.steps = keys(expect.steps, step);
  if (Array.isArray(expect.errors)) {
    expect.errors = expect.errors.map((error: unknown) =>
      isFields(error) && error.step !== undefined ? { ...error, step: step(error.step) } : error,
    );
  }
  return { ...next, expect };
}

const keys = (map: Fields, name: Name): Fields =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [String(name(key)), value]));

/** Scripts that name a sink in quotes: no program can tell whether that is what they mean. */
export function scriptsThatName(spec: Fields, id: string): string[] {
  const steps = Array.isArray(spec.processors) ? (spec.processors as Fields[]) : [];
  const quoted = [`"${id}"`, `'${id}'`, `\`${id}\``];
  return steps
    .filter(
      (step) => typeof step.inline === "string" && quoted.some((word) => String(step.inline).includes(word)),
    )
    .map((step) => String(step.id ?? step.type));
}

/** How a sink gets its events. */
export interface Way {
  /** The conditions, or why it gets nothing; null: it gets every event. */
  label: string | null;
  chosen: boolean;
}

/** How each sink gets its events: by the rules of the last `route`, or by the conditions of a task's outputs. */
export function waysOf(place: Place, value: Value, view: View): Map<string, Way> {
  const steps = (value.spec?.processors ?? []) as Fields[];
  const last = steps.findLast((step) => step.type === "route");
  return new Map(
    view.sinks.map(({ id, value: sink }) => {
      const own = place === "tasks" && sink.when ? String(sink.when) : null;
      const way = last ? wayBy(last, id) : { label: null, chosen: true };
      return [id, own ? { ...way, label: way.label ? `${way.label}, if ${own}` : own } : way];
    }),
  );
}

function wayBy(step: Fields, id: string): Way {
  const rules = (Array.isArray(step.rules) ? step.rules : []).filter(isFields);
  const conditions = rules
    .filter((rule) => Array.isArray(rule.sinks) && rule.sinks.includes(id))
    .map((rule) => String(rule.when ?? ""));
  if (step.default === "all" || (Array.isArray(step.default) && step.default.includes(id)))
    conditions.push("else");
  if (conditions.length === 0) return { label: "no rule selects this sink", chosen: false };
  return { label: conditions.join(" or "), chosen: true };
}
