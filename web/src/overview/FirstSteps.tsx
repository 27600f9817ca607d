import { Button, Code, Paper, SimpleGrid, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconArrowsRightLeft, IconFileImport, IconTimeline } from "@tabler/icons-react";
import { type ComponentType, lazy, type ReactNode, Suspense, useState } from "react";
import { Link } from "react-router";
import { useAllowed } from "#/api/session";
import classes from "./overview.module.css";

const UploadDialog = lazy(async () => ({ default: (await import("#/documents/UploadDialog")).UploadDialog }));

/** What an empty registry shows: three ways to begin, to those who may. */
export function FirstSteps() {
  const [uploading, setUploading] = useState(false);
  if (!useAllowed("editor")) return <NothingYet />;
  return (
    <Stack component="section" aria-labelledby="first-steps" gap="md">
      <div>
        <Title order={2} size="h3" id="first-steps">
          No pipelines yet
        </Title>
        <Text c="dimmed">There are three ways to begin. Each takes a minute, and all can be undone.</Text>
      </div>
      <SimpleGrid cols={{ base: 1, md: 3 }}>
        <Way
          icon={IconArrowsRightLeft}
          title="Build a pipeline"
          to="/pipelines/new"
          action="Open the builder"
        >
          Choose a source, processing steps and sinks. Start with generated events: no other system is needed.
        </Way>
        <Way icon={IconTimeline} title="Create a stream" to="/streams/new" action="Create a stream">
          A stream stores events on disk. Send events to it over HTTP; any number of pipelines can read them.
        </Way>
        <Way
          icon={IconFileImport}
          title="Import a bundle"
          act={() => setUploading(true)}
          action="Choose a file"
        >
          A bundle is one YAML or JSON file with streams, pipelines and other documents. You review the
          changes before they are applied.
        </Way>
      </SimpleGrid>
      <Text size="sm" c="dimmed" className={classes.wrap}>
        Or on the command line: <Code>penstock apply FILE.yaml</Code> imports a bundle, and{" "}
        <Code>penstock up --demo</Code> starts with an example.
      </Text>
      {uploading && (
        <Suspense>
          <UploadDialog opened onClose={() => setUploading(false)} />
        </Suspense>
      )}
    </Stack>
  );
}

function NothingYet() {
  return (
    <section aria-labelledby="first-steps">
      <Title order={2} size="h3" id="first-steps">
        Nothing flows yet
      </Title>
      <Text c="dimmed">There are no documents. Creating them needs the role editor.</Text>
    </section>
  );
}

interface WayProps {
  icon: ComponentType<{ size?: number; stroke?: number }>;
  title: string;
  action: string;
  to?: string;
  act?: () => void;
  children: ReactNode;
}

function Way({ icon: Icon, title, action, to, act, children }: WayProps) {
  return (
    <Paper withBorder p="lg" className={classes.way}>
      <ThemeIcon variant="light" size="xl" aria-hidden>
        <Icon size={24} stroke={1.6} />
      </ThemeIcon>
      <Title order={3} size="h4">
        {title}
      </Title>
      <Text size="sm" c="dimmed" flex={1}>
        {children}
      </Text>
      {to === undefined ? (
        <Button variant="light" onClick={act}>
          {action}
        </Button>
      ) : (
        <Button component={Link} to={to} variant="light">
          {action}
        </Button>
      )}
    </Paper>
  );
}
