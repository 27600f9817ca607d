import { Alert, Button, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { useNavigate } from "react-router";
import { KINDS, type KindName, kindAt, type Place } from "#/api/kinds";
import { read } from "#/documents/editing/yaml";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";
import { keepDraft } from "./drafts";
import { Gallery } from "./Gallery";
import { NeededDialog } from "./NeededDialog";
import type { Template } from "./templates";

/** Where a new pipeline or task begins: with a template, with pasted text, or empty. */
export function Starts({ place, onStart }: { place: Place; onStart: (text: string) => void }) {
  const [isPasting, setPasting] = useState(false);
  const [chosen, setChosen] = useState<Template | null>(null);
  if (isPasting) return <Paste place={place} onStart={onStart} onBack={() => setPasting(false)} />;
  return (
    <>
      <Gallery
        place={place}
        onEmpty={onStart}
        onPaste={() => setPasting(true)}
        onTemplate={(template) =>
          template.needs.length === 0 ? onStart(template.text) : setChosen(template)
        }
      />
      {chosen && (
        <NeededDialog
          template={chosen}
          onReady={() => onStart(chosen.text)}
          onClose={() => setChosen(null)}
        />
      )}
    </>
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
