import { Box, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

interface Props {
  title: string;
  about?: ReactNode;
  children: ReactNode;
}

/** A page for those who are not logged in: one card, without navigation. */
export function FrontPage({ title, about, children }: Props) {
  useDocumentTitle(`${title} · Penstock`);
  return (
    <Box component="main" px="md" pt={{ base: "xl", sm: "14vh" }} pb="xl" maw={452} mx="auto">
      <Group gap={8} justify="center" mb="lg">
        <img src="/ui/favicon.svg" width={30} height={30} alt="" />
        <Text fw={700} size="xl">
          Penstock
        </Text>
      </Group>
      <Paper withBorder p="xl">
        <Stack>
          <div>
            <Title order={1} size="h3">
              {title}
            </Title>
            {about && (
              <Text size="sm" c="dimmed" mt={4} component="div">
                {about}
              </Text>
            )}
          </div>
          {children}
        </Stack>
      </Paper>
    </Box>
  );
}
