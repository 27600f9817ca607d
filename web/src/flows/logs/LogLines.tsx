import { Text, VisuallyHidden } from "@mantine/core";
import { useEffect, useRef } from "react";
import { moment } from "#/components/format";
import classes from "./LogLines.module.css";
import { type LogLine, shown } from "./lines";

const SIGNS: Record<LogLine["level"], string> = { debug: "D", info: "I", warning: "W", error: "E" };

/** Lines of a log, the newest at the end. It stays at the end unless somebody scrolls up. */
export function LogLines({ lines, still }: { lines: readonly LogLine[]; still: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines are what it scrolls for
  useEffect(() => {
    if (box.current && atEnd.current && !still) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, still]);
  return (
    <div
      ref={box}
      className={classes.box}
      role="log"
      aria-label="Log"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {lines.map((line, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines may be the same, and only come at the end
        <Line key={place} line={line} />
      ))}
    </div>
  );
}

function Line({ line }: { line: LogLine }) {
  const where = line.step ?? line.sink;
  const fields = Object.entries(line.fields).filter(([, value]) => value !== null);
  return (
    <div className={classes.line} data-level={line.level}>
      <span className={classes.time}>{moment(line.at)}</span>
      <span className={classes.level} aria-hidden title={line.level}>
        {SIGNS[line.level]}
      </span>
      <VisuallyHidden>{line.level}</VisuallyHidden>
      <span className={classes.text}>
        {where && (
          <Text span fz="inherit" fw={600}>
            {where}{" "}
          </Text>
        )}
        {line.message}
        {fields.length > 0 && (
          <Text span fz="inherit" c="dimmed">
            {" "}
            {fields.map(([name, value]) => `${name}=${shown(value)}`).join(" ")}
          </Text>
        )}
      </span>
    </div>
  );
}
