import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  type CompletionSource,
  snippetCompletion,
} from "@codemirror/autocomplete";
import type { SqlFunction } from "./functions";
import type { Column } from "./language";

export const columnOption = ({ name, type }: Column): Completion => ({
  label: name,
  type: "property",
  detail: type,
  boost: 20,
});

export const functionOption = ({ name, usage, example }: SqlFunction): Completion => ({
  label: name,
  type: "function",
  apply: `${name}(`,
  info: example ? `${usage}\n\n${example}` : usage,
});

// What an event of a script has beside its columns, and what the script finds around it.
const META: Completion[] = [
  { label: "key", type: "property", info: "Key of the event; writable." },
  { label: "headers", type: "property", info: "Headers of the event; writable." },
  { label: "offset", type: "property", info: "Offset of the event in its stream." },
  { label: "time", type: "property", info: "When the event was appended." },
  {
    label: "sink",
    type: "property",
    info: "Set to a sink id, or a list of sink ids, to deliver the event only there.",
  },
];

// Template strings with an escaped dollar: `${…}` is the syntax of snippets.
const GLOBALS: Completion[] = [
  snippetCompletion(`function processBatch(events) {\n  return events.map(event => ({...event, \${}}))\n}`, {
    label: "processBatch",
    type: "function",
    detail: "entry point",
    info: "Receives an array of events and returns an array of events. Return an empty array to drop them all.",
  }),
  snippetCompletion(`console.log(\${})`, {
    label: "console.log",
    type: "function",
    info: "Writes to the pipeline's log, up to 100 lines per batch.",
  }),
  snippetCompletion(`require('\${name}')`, {
    label: "require",
    type: "function",
    info: "Returns the exports of a file listed under `modules`.",
  }),
];

/** A source of completions that has none inside of a number: `log10` is no help to someone who types `10`. */
export function notInNumbers(source: CompletionSource): CompletionSource {
  return (context) => (context.matchBefore(/(?<![\w$])\d[\w.]*/) ? null : source(context));
}

/** Completion in a script: the columns of an event, its `$meta`, and what is around it. */
export function scriptSource(columns: Column[]) {
  const fields: Completion[] = [
    ...columns.map(columnOption),
    { label: "$meta", type: "property", info: "key, headers, offset and time of the event." },
  ];
  return (context: CompletionContext): CompletionResult | null => {
    const after = context.matchBefore(/[\w$]+(?:\.[\w$]*)+/);
    if (after) {
      const from = after.from + after.text.lastIndexOf(".") + 1;
      const owner = after.text.slice(0, from - after.from - 1);
      if (/(^|\.)(console|Math|JSON|Object|Array|events)$/.test(owner)) return null;
      const options = owner.endsWith("$meta") ? META : owner.includes(".") ? [] : fields;
      return options.length > 0 ? { from, options, validFor: /^[\w$]*$/ } : null;
    }
    const word = context.matchBefore(/[\w$]+/);
    if (!word && !context.explicit) return null;
    return { from: word?.from ?? context.pos, options: [...GLOBALS, ...fields], validFor: /^[\w$]*$/ };
  };
}
