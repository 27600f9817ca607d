import { Button, Group, Popover, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { IconCalendarTime, IconZoomReset } from "@tabler/icons-react";
import { useState } from "react";
import { moment } from "./format";
import { isSpan, localText, spanOf, type TimeRange } from "./timeRange";

const SPANS = [
  { value: "15", label: "15 min" },
  { value: "60", label: "1 h" },
  { value: "1440", label: "24 h" },
];

interface Props {
  range: TimeRange;
  onChange: (range: TimeRange) => void;
}

/** Which time charts show: the last minutes, or from one moment to another. */
export function RangePicker({ range, onChange }: Props) {
  const fixed = isSpan(range);
  return (
    <Group gap="xs">
      {fixed && (
        <>
          <Text size="xs" c="dimmed" role="status">
            {moment(range.from)} to {moment(range.to)}
          </Text>
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconZoomReset size={14} aria-hidden />}
            onClick={() => onChange({ minutes: 15 })}
          >
            Reset zoom
          </Button>
        </>
      )}
      <SegmentedControl
        size="xs"
        aria-label="Time range"
        data={SPANS}
        value={fixed ? "" : String(range.minutes)}
        onChange={(minutes) => onChange({ minutes: Number(minutes) })}
      />
      <Custom range={range} onChange={onChange} />
    </Group>
  );
}

function Custom({ range, onChange }: Props) {
  const [opened, setOpened] = useState(false);
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const found = spanOf(from, to);
  const open = () => {
    const now = Date.now();
    const span = isSpan(range) ? range : { from: now - range.minutes * 60_000, to: now };
    setFrom(localText(span.from));
    setTo(localText(span.to));
    setOpened(!opened);
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Button
          size="compact-sm"
          variant={isSpan(range) ? "light" : "default"}
          leftSection={<IconCalendarTime size={14} aria-hidden />}
          onClick={open}
        >
          Custom
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (typeof found === "string") return;
            onChange(found);
            setOpened(false);
          }}
        >
          <Stack gap="xs">
            <Moment label="From" value={from} onChange={setFrom} />
            <Moment label="To" value={to} onChange={setTo} />
            {typeof found === "string" && (
              <Text size="xs" c="var(--mantine-color-error)" role="alert">
                {found}
              </Text>
            )}
            <Button type="submit" size="xs" disabled={typeof found === "string"}>
              Show
            </Button>
            <Text size="xs" c="dimmed">
              Or drag across a chart to zoom in.
            </Text>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

interface MomentProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

function Moment({ label, value, onChange }: MomentProps) {
  return (
    <TextInput
      label={label}
      type="datetime-local"
      step={1}
      size="xs"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
