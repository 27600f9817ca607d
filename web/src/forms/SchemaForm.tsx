import { Button, Group, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useMemo, useRef } from "react";
import type { Problem } from "#/api/client";
import { Fields } from "./Fields";
import classes from "./forms.module.css";
import { below, focusPath, labelOf, problemsLeft } from "./paths";
import { type JsonSchema, resolve } from "./schema";
import { type FormContext, FormStateContext } from "./state";

export { focusPath } from "./paths";
export type { JsonSchema } from "./schema";
export type { FormContext } from "./state";

interface Props {
  schema: JsonSchema;
  /** Where `$ref` is looked up; the schema itself, unless told. */
  root?: JsonSchema;
  value: Record<string, unknown>;
  onChange: (next: Record<string, unknown>) => void;
  /** The place of the value in its document, such as `spec.processors[0]`. */
  path: string;
  /** Those at or below the path are shown at their fields. */
  problems?: readonly Problem[];
  hide?: string[];
  /** Fields to show before the others. */
  first?: string[];
  context?: FormContext;
}

const NONE: readonly Problem[] = [];

/**
 * A form for whatever a JSON Schema describes. It checks nothing: what is wrong is told by the server, as
 * problems with a path.
 */
export function SchemaForm({ schema, root, value, onChange, path, problems, hide, first, context }: Props) {
  const state = useMemo(() => {
    const from = root ?? schema;
    return {
      root: from,
      whole: path === "spec" ? { schema: resolve(schema, from), value } : undefined,
      problems: problems ?? NONE,
      context: context ?? {},
    };
  }, [root, schema, value, path, problems, context]);
  const visible = problemsLeft(
    state.problems,
    path,
    (hide ?? []).map((name) => below(path, name)),
  );
  return (
    <FormStateContext value={state}>
      <div className={classes.form}>
        <Faults problems={visible} path={path} />
        <Fields
          schema={resolve(schema, state.root)}
          value={value}
          path={path}
          hide={hide}
          first={first}
          onChange={onChange}
        />
      </div>
    </FormStateContext>
  );
}

/** How many fields are wrong, and the way to them for those who do not see them. */
function Faults({ problems, path }: { problems: Problem[]; path: string }) {
  const ref = useRef<HTMLDivElement>(null);
  const places = problems.map((problem) => problem.path ?? "").filter((place) => place !== path);
  const first = places[0];
  return (
    <div ref={ref} className={classes.status} role="status">
      {first !== undefined && (
        <Group gap="xs" className={classes.faults}>
          <IconAlertTriangle size={16} aria-hidden />
          <Text size="sm">
            {places.length === 1 ? "1 field needs" : `${places.length} fields need`} attention.
          </Text>
          <Button
            variant="subtle"
            color="red"
            size="compact-sm"
            onClick={() => focusPath(first, ref.current?.parentElement ?? document)}
          >
            Go to {labelOf(first)}
          </Button>
        </Group>
      )}
    </div>
  );
}
