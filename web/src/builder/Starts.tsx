import { Alert, Button, Group, SimpleGrid, Stack, Text, UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import { KINDS, type KindName, kindAt, type Place } from "#/api/kinds";
import { read } from "#/documents/editing/yaml";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import classes from "./builder.module.css";
import { keepDraft } from "./drafts";
import { templatesOf } from "./templates";

/** What a new pipeline or task can begin with. */
export function Starts({ place, onStart }: { place: Place; onStart: (text: string) => void }) {
  const [isPasting, setPasting] = useState(false);
  if (isPasting) return <Paste place={place} onStart={onStart} onBack={() => setPasting(false)} />;
  return (
    <Stack gap="md">
      <Text c="dimmed">Begin with one of these; everything can be changed afterwards.</Text>
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        {templatesOf(place).map(({ title, about, text }) => (
          <UnstyledButton key={title} className={classes.card} onClick={() => onStart(text)}>
            <Text fw={650}>{title}</Text>
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          </UnstyledButton>
        ))}
        <UnstyledButton className={classes.card} onClick={() => setPasting(true)}>
          <Text fw={650}>From YAML</Text>
          <Text size="sm" c="dimmed">
            Paste a document as YAML or JSON. Comments are preserved while you edit.
          </Text>
        </UnstyledButton>
      </SimpleGrid>
    </Stack>
  );
}

function Paste({
  place,
  onStart,
  onBack,
}: {
  place: Place;
  onStart: (text: string) => void;
  onBack: () => void;
}) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const { value, fault } = read(text);
  const wanted = kindAt(place)!;
  const kind = KINDS[(value?.kind ?? wanted.name) as KindName];
  const isElsewhere =
    kind !== undefined && kind !== wanted && (kind.name === "Task" || kind.name === "Pipeline");
  const go = () => {
    if (!isElsewhere) return onStart(text);
    keepDraft(kind.place, null, { text, goodText: text, base: "", tag: null, at: Date.now() });
    return navigate(`/${kind.place}/new`);
  };
  return (
    <Stack gap="sm">
      <LazyCodeEditor
        language="yaml"
        label="Document as YAML"
        value={text}
        onChange={setText}
        minHeight={320}
        maxHeight={560}
      />
      {text.trim() !== "" && fault && (
        <Alert color="red" variant="light">
          Line {fault.line}: {fault.message}
        </Alert>
      )}
      {value && kind !== wanted && !isElsewhere && (
        <Alert color="red" variant="light">
          Expected a {wanted.one}, but the kind is {String(value.kind)}.
        </Alert>
      )}
      <Group>
        <Button onClick={go} disabled={!value || (kind !== wanted && !isElsewhere)}>
          {isElsewhere ? `Open as a ${kind.one}` : "Open"}
        </Button>
        <Button variant="default" onClick={onBack}>
          Back
        </Button>
      </Group>
    </Stack>
  );
}
