import { useEffect, useRef } from "react";
import { Problems } from "#/components/Problems";
import { Effective } from "./Effective";
import { FieldView } from "./FieldView";
import classes from "./forms.module.css";
import { arrange, isWide, type Placed } from "./layout";
import { below, problemsBelow, problemsLeft } from "./paths";
import type { JsonSchema } from "./schema";
import { useForm } from "./state";

interface Props {
  schema: JsonSchema;
  value: Record<string, unknown>;
  path: string;
  hide?: string[];
  first?: string[];
  onChange: (next: Record<string, unknown>) => void;
}

/** The fields of an object: the important ones, and the others folded away. */
export function Fields({ schema, value, path, hide, first, onChange }: Props) {
  const { root, whole, problems } = useForm();
  const { main, advanced } = arrange(schema, root, value, hide, first, whole);
  const shown = [...main, ...advanced].map(({ name }) => below(path, name));
  const left = problemsLeft(problems, path, [...shown, ...(hide ?? []).map((name) => below(path, name))]);
  const set = (name: string, next: unknown) => {
    const { [name]: _, ...rest } = value;
    onChange(next === undefined ? rest : { ...value, [name]: next });
  };
  const list = (fields: Placed[]) => (
    <div className={classes.fields}>
      {fields.map(({ name, label, field, required, unmet }) => (
        <div key={name} className={isWide(name, field, value[name]) ? classes.wide : undefined}>
          <Effective label={label} unmet={unmet} onRemove={() => set(name, undefined)}>
            <FieldView
              name={name}
              label={label}
              field={field}
              value={value[name]}
              path={below(path, name)}
              required={required}
              parent={typeof value.type === "string" ? value.type : undefined}
              onChange={(next) => set(name, next)}
            />
          </Effective>
        </div>
      ))}
    </div>
  );
  return (
    <>
      <Problems problems={left} />
      {main.length > 0 && list(main)}
      {advanced.length > 0 && (
        <Fold
          isOpen={main.length === 0 || advanced.some(({ name }) => value[name] !== undefined)}
          hasProblems={advanced.some(({ name }) => problemsBelow(problems, below(path, name)).length > 0)}
          names={advanced.map(({ label }) => label)}
        >
          {list(advanced)}
        </Fold>
      )}
    </>
  );
}

interface FoldProps {
  isOpen: boolean;
  hasProblems: boolean;
  names: string[];
  children: React.ReactNode;
}

// Open where something in it is set or wrong; after that it is the reader's to open and to close.
function Fold({ isOpen, hasProblems, names, children }: FoldProps) {
  const ref = useRef<HTMLDetailsElement>(null);
  const begin = useRef(isOpen);
  useEffect(() => {
    if (begin.current || hasProblems) ref.current!.open = true;
  }, [hasProblems]);
  return (
    <details ref={ref} className={classes.fold}>
      <summary>
        Advanced <span className={classes.names}>{names.join(", ")}</span>
      </summary>
      <div className={classes.folded}>{children}</div>
    </details>
  );
}
