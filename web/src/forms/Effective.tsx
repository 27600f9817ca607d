import { Button, Group, Text } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import { textOf, type Unmet } from "./conditions";
import { Prose } from "./Prose";
import { FormStateContext, useForm } from "./state";

interface Props {
  label: string;
  unmet: Unmet | undefined;
  onRemove: () => void;
  children: ReactNode;
}

/** A field that is set and has no effect can't be edited, and shows the reason; others are shown as they are. */
export function Effective({ label, unmet, onRemove, children }: Props) {
  const form = useForm();
  const locked = useMemo(() => ({ ...form, context: { ...form.context, readOnly: true } }), [form]);
  if (!unmet) return children;
  return (
    <>
      <FormStateContext value={locked}>{children}</FormStateContext>
      <Group gap="xs" mt={4}>
        <Text size="xs" c="var(--mantine-color-yellow-text)">
          No effect: only with <Prose text={textOf(unmet)} />
        </Text>
        {!form.context.readOnly && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            aria-label={`Remove ${label}`}
            onClick={onRemove}
          >
            Remove
          </Button>
        )}
      </Group>
    </>
  );
}
