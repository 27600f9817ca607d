import { Badge, Button, Code, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useRef } from "react";
import { done } from "#/components/notify";
import { unitOf, withUnit } from "#/forms/units";
import { applied, isApplied, PRESETS, type Preset } from "./presets";

type Spec = Record<string, unknown>;

interface Props {
  spec: Spec;
  /** The spec with all defaults filled in. */
  effective: Spec;
  onChange: (spec: Spec) => void;
  isDisabled: boolean;
}

/** Settings for a goal: what each of them sets is told, and can be taken back. */
export function Presets({ spec, effective, onChange, isDisabled }: Props) {
  const change = useRef(onChange);
  change.current = onChange;
  const use = (preset: Preset) => {
    onChange(applied(spec, preset));
    done(`Applied preset: ${preset.title.toLowerCase()}.`, () => change.current(spec));
  };
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        Presets
      </Title>
      <Stack gap="md">
        {PRESETS.map((preset) => (
          <div key={preset.title}>
            <Group justify="space-between" wrap="nowrap">
              <Text size="sm" fw={600}>
                {preset.title}
              </Text>
              {isApplied(effective, preset) ? (
                <Badge variant="light" tt="none">
                  in use
                </Badge>
              ) : (
                <Button
                  size="compact-xs"
                  variant="default"
                  disabled={isDisabled}
                  aria-label={`Use ${preset.title}`}
                  onClick={() => use(preset)}
                >
                  Use
                </Button>
              )}
            </Group>
            <Text size="sm" c="dimmed">
              {preset.goal}
            </Text>
            <Group gap={4} mt={4}>
              {preset.sets.map(([path, value]) => (
                <Code key={path.join(".")}>
                  {path.join(".")}: {written(path.at(-1)!, value)}
                </Code>
              ))}
            </Group>
          </div>
        ))}
      </Stack>
    </Paper>
  );
}

function written(name: string, value: string | number | boolean): string {
  const unit = unitOf(name);
  return unit && typeof value === "number" ? withUnit(value, unit) : String(value);
}
