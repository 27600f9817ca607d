import { Anchor, Button, Code, CopyButton, Group, Text, UnstyledButton } from "@mantine/core";
import { IconCheck, IconChevronDown, IconChevronRight, IconCopy } from "@tabler/icons-react";
import { memo, useState } from "react";
import { Link } from "react-router";
import { parse } from "#/api/json";
import { moment } from "#/components/format";
import type { StreamEvent } from "./api";
import { fieldOf } from "./fields";
import classes from "./streams.module.css";
import type { Line } from "./tailing";
import type { User } from "./users";

interface Props {
  lines: readonly Line[];
  /** Flows that read the stream: an event has a story through each of them. */
  readers: readonly User[];
  /** The fields that a line shows; none: the whole event. */
  columns?: readonly string[];
  label: string;
}

const WHOLE: readonly string[] = [];

/** Events, one a line; a line opens to all that an event has. */
export function EventList({ lines, readers, columns = WHOLE, label }: Props) {
  return (
    <ol className={classes.events} aria-label={label}>
      {columns.length > 0 && <Header columns={columns} />}
      {lines.map((line) =>
        line.gap ? (
          <li key={`gap ${line.at}`} className={classes.gap}>
            Offsets {line.gap.first} to {line.gap.next - 1} are gone ({line.gap.reason}).
          </li>
        ) : (
          <EventLine key={line.at} event={line.event} readers={readers} columns={columns} />
        ),
      )}
    </ol>
  );
}

/** The names of the columns, above their values. */
function Header({ columns }: { columns: readonly string[] }) {
  return (
    <li className={classes.header}>
      <span className={classes.offset}>offset</span>
      <span className={classes.time}>time</span>
      <span className={classes.keyCell}>key</span>
      {columns.map((name) => (
        <span key={name} className={classes.cell} title={name}>
          {name}
        </span>
      ))}
    </li>
  );
}

interface LineProps {
  event: StreamEvent;
  readers: readonly User[];
  columns: readonly string[];
}

const EventLine = memo(function EventLine({ event, readers, columns }: LineProps) {
  const [open, setOpen] = useState(false);
  return (
    <li className={classes.event}>
      <UnstyledButton className={classes.line} onClick={() => setOpen(!open)} aria-expanded={open}>
        {open ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
        <span className={classes.offset}>{event.offset}</span>
        <time className={classes.time} dateTime={event.time}>
          {moment(event.time).slice(11)}
        </time>
        {columns.length > 0 ? (
          <Cells event={event} columns={columns} />
        ) : (
          <>
            {event.key !== null && <span className={classes.key}>{plain(event.key)}</span>}
            <span className={classes.content}>{plain(event.columns ?? event.value)}</span>
          </>
        )}
      </UnstyledButton>
      {open && <Details event={event} readers={readers} />}
    </li>
  );
});

function Cells({ event, columns }: { event: StreamEvent; columns: readonly string[] }) {
  return (
    <>
      <span className={classes.keyCell}>{event.key !== null && plain(event.key)}</span>
      {columns.map((name) => {
        const value = fieldOf(event, name);
        const text = value === undefined || value === null ? "–" : plain(value);
        return (
          <span key={name} className={classes.cell} title={text}>
            {text}
          </span>
        );
      })}
    </>
  );
}

function Details({ event, readers }: { event: StreamEvent; readers: readonly User[] }) {
  const headers = Object.entries(event.headers);
  return (
    <div className={classes.details}>
      <Group gap="md" mb={4}>
        <Fact name="offset" value={String(event.offset)} />
        <Fact name="appended" value={event.time} />
        <Fact name="key" value={event.key === null ? "none" : plain(event.key)} />
        {headers.map(([name, value]) => (
          <Fact key={name} name={`header ${name}`} value={plain(value)} />
        ))}
        <CopyButton value={JSON.stringify(event, null, 2)}>
          {({ copied, copy }) => (
            <Button
              size="compact-xs"
              variant="default"
              onClick={copy}
              leftSection={copied ? <IconCheck size={12} /> : <IconCopy size={12} />}
            >
              {copied ? "Copied" : "Copy event"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Code block className={classes.pretty}>
        {pretty(event.columns ?? event.value)}
      </Code>
      {readers.length > 0 && (
        <Text size="sm" mt={4}>
          Trace in{" "}
          {readers.map(({ page, name }, index) => (
            <span key={page}>
              {index > 0 && ", "}
              <Anchor component={Link} to={`${page}?tab=story&offset=${event.offset}`} size="sm">
                {name}
              </Anchor>
            </span>
          ))}
        </Text>
      )}
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <Text size="xs">
      <Text span c="dimmed" size="xs">
        {name}
      </Text>{" "}
      <code>{value}</code>
    </Text>
  );
}

const plain = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** A value as people read it; text that is JSON is laid out as such. */
function pretty(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    return JSON.stringify(parse(value), null, 2);
  } catch {
    return value;
  }
}
