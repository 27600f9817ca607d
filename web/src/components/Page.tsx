import { Box, Center, Group, Loader, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

interface Props {
  title: string;
  /** Beside the title: a status, an id. */
  beside?: ReactNode;
  /** Below the title: a sentence. */
  about?: ReactNode;
  /** Buttons at the right. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A page: its heading, what can be done, and its content. */
export function Page({ title, beside, about, actions, children }: Props) {
  useDocumentTitle(`${title} · Penstock`);
  return (
    <Stack gap="md" h="100%">
      <Group justify="space-between" align="flex-start" gap="sm">
        <Box flex="1 1 320px" miw={0}>
          <Group gap="sm">
            <Title order={1} size="h2">
              {title}
            </Title>
            {beside}
          </Group>
          {about && (
            <Text c="dimmed" size="sm" maw={760}>
              {about}
            </Text>
          )}
        </Box>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

/** While something loads. */
export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <Center mih={160}>
      <Loader role="status" aria-label={what} />
    </Center>
  );
}

/** Where there is nothing yet: says what would be here and how to get it. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Center mih={220} p="xl">
      <Stack align="center" gap="sm" maw={520}>
        <Text fw={650} size="lg">
          {title}
        </Text>
        <Text c="dimmed" ta="center" component="div">
          {children}
        </Text>
        {action}
      </Stack>
    </Center>
  );
}
