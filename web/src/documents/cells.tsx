import { ActionIcon, Menu } from "@mantine/core";
import {
  IconChevronLeft,
  IconCopy,
  IconDotsVertical,
  IconEye,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconTrash,
} from "@tabler/icons-react";
import type { CustomCellRendererProps, CustomFloatingFilterProps, CustomHeaderProps } from "ag-grid-react";
import { type ComponentType, useEffect, useRef, useState } from "react";
import { Link } from "react-router";
import { type AnyDocument, pageOf } from "#/api/kinds";
import { StatusBadge } from "#/components/StatusBadge";
import { VERBS } from "#/flows/useControls";
import { toggleOf } from "./bulk";
import { type NumberCondition, numberCondition, numberText } from "./filters";
import classes from "./grid.module.css";
import { type Row, stateOf } from "./rows";

/** What the cells of a grid can ask of its page. */
export interface GridContext {
  /** What may be done with a row. */
  actions: readonly RowAction[];
  /** Whether flows may be paused, resumed and started. */
  mayOperate: boolean;
  act: (action: RowAction, document: AnyDocument) => void;
  toggleTimes: () => void;
}

export type RowAction = "view" | "edit" | "clone" | "delete" | "pause" | "resume" | "start";

type CellProps<Value = unknown> = CustomCellRendererProps<Row, Value, GridContext>;

/** The name of a document, as a link to its page, with its id below. */
export function NameCell({ data }: CellProps<string>) {
  if (!data) return null;
  const { kind, id, name, metadata } = data.document;
  return (
    <div className={classes.named} title={[name, metadata.description].filter(Boolean).join(": ")}>
      <Link to={pageOf(kind, id)} className={classes.link} tabIndex={-1}>
        {name}
      </Link>
      <span className={classes.id}>{id}</span>
    </div>
  );
}

/** A name of another document as a link to it. */
export function StreamCell({ value }: CellProps<string>) {
  if (!value) return null;
  return (
    <Link to={pageOf("Stream", value)} className={classes.link} tabIndex={-1}>
      {value}
    </Link>
  );
}

export function StatusCell({ data }: CellProps) {
  return data ? <StatusBadge {...stateOf(data)} /> : null;
}

interface Action {
  action: RowAction;
  label: string;
  icon: ComponentType<{ size?: number; stroke?: number }>;
  color?: string;
}

const ACTIONS: Action[] = [
  { action: "view", label: "View", icon: IconEye },
  { action: "edit", label: "Edit", icon: IconPencil },
  { action: "clone", label: "Clone", icon: IconCopy },
  { action: "delete", label: "Delete", icon: IconTrash, color: "red" },
];

/** What can be done with a row: pausing or going on first, as far as it runs. */
function offered({ actions, mayOperate }: GridContext, document: AnyDocument): Action[] {
  const verb = mayOperate ? toggleOf(document) : null;
  const icon = verb === "pause" ? IconPlayerPause : IconPlayerPlay;
  const toggle = verb ? [{ action: verb, label: VERBS[verb].label, icon }] : [];
  return [...toggle, ...ACTIONS.filter(({ action }) => actions.includes(action))];
}

/** Pause or resume, view, edit, clone and delete. */
export function ActionsCell({ data, context }: CellProps) {
  if (!data) return null;
  const { document } = data;
  return (
    <div className={classes.actions}>
      {offered(context, document).map(({ action, label, icon: Icon, color }) => (
        // Plain buttons: a grid that is scrolled makes hundreds of them a second.
        <button
          key={action}
          type="button"
          className={classes.action}
          data-color={color}
          title={label}
          aria-label={`${label} ${document.name}`}
          onClick={() => context.act(action, document)}
        >
          <Icon size={16} stroke={1.7} />
        </button>
      ))}
    </div>
  );
}

/** The same as a menu, where there is little room. */
export function ActionsMenuCell({ data, context }: CellProps) {
  if (!data) return null;
  const { document } = data;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${document.name}`}>
          <IconDotsVertical size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {offered(context, document).map(({ action, label, icon: Icon, color }) => (
          <Menu.Item
            key={action}
            color={color}
            leftSection={<Icon size={16} />}
            onClick={() => context.act(action, document)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** The header of a column that is collapsed to a strip. */
export function StripHeader({ displayName, context }: CustomHeaderProps<Row, GridContext>) {
  return (
    <button
      type="button"
      className={classes.strip}
      onClick={context.toggleTimes}
      title={`${displayName}: show`}
      aria-label={`${displayName}: show`}
    >
      <IconChevronLeft size={14} />
    </button>
  );
}

/** A filter under a header: a number, after > or < if it is not the least one. */
export function NumberFilter({
  model,
  onModelChange,
  column,
}: CustomFloatingFilterProps<never, Row, GridContext, NumberCondition>) {
  const written = model ? numberText(model) : "";
  const [text, setText] = useState(written);
  const told = useRef(written);
  useEffect(() => {
    if (written !== told.current) setText(written); // the filters were cleared, or came with the address
    told.current = written;
  }, [written]);
  const change = (next: string) => {
    setText(next);
    const condition = numberCondition(next);
    if (condition === undefined) return; // not a number yet
    told.current = condition ? numberText(condition) : "";
    onModelChange(condition);
  };
  return (
    <input
      className={classes.choice}
      aria-label={`${column.getColDef().headerName} filter`}
      title="Such as 5 (at least 5), > 5, < 1k, = 0"
      placeholder="> <"
      value={text}
      onChange={({ target }) => change(target.value)}
      aria-invalid={numberCondition(text) === undefined || undefined}
    />
  );
}

export interface Choices {
  choices: readonly (readonly [value: string, label: string])[];
}

interface Chosen {
  filterType: "text";
  type: "contains";
  filter: string;
}

/** A filter under a header: one of a few values. */
export function ChoiceFilter({
  model,
  onModelChange,
  choices,
  column,
}: CustomFloatingFilterProps<never, Row, GridContext, Chosen> & Choices) {
  return (
    <select
      className={classes.choice}
      aria-label={`${column.getColDef().headerName} filter`}
      value={model?.filter ?? ""}
      onChange={({ target }) =>
        onModelChange(target.value ? { filterType: "text", type: "contains", filter: target.value } : null)
      }
    >
      <option value="">all</option>
      {choices.map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}
