import {
  Button,
  Code,
  Drawer,
  Group,
  Spoiler,
  Stack,
  Text,
  TextInput,
  UnstyledButton,
  VisuallyHidden,
} from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useDocuments } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import type { Fields } from "#/documents/editing/yaml";
import { NewStream } from "#/forms/NewStream";
import { Prose } from "#/forms/Prose";
import classes from "./builder.module.css";
import { beginning, type Component, exampleOf } from "./catalogue";
import { type Adding, useBuilder } from "./context";
import { fieldsOf } from "./parts";

interface Props {
  adding: Adding | null;
  onPick: (part: Fields) => void;
  onClose: () => void;
}

/** One thing that can be put on the canvas. */
interface Offer {
  key: string;
  title: string;
  about: string;
  begun: Fields;
  example?: { text: string; part: Fields };
  guarantee?: string | null;
  unusable?: string | null;
}

const TITLES = { source: "Choose an input", processor: "Add a step", sink: "Add an output" };

/** What there is to put on the canvas: found by a word, with an example of each. */
export function ComponentDrawer({ adding, onPick, onClose }: Props) {
  const isNarrow = useMediaQuery("(max-width: 48em)");
  return (
    <Drawer
      opened={adding !== null}
      onClose={onClose}
      title={TITLES[adding?.role ?? "processor"]}
      position="right"
      size={isNarrow ? "100%" : "md"}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {adding && <Offers key={adding.role} adding={adding} onPick={onPick} />}
    </Drawer>
  );
}

function Offers({ adding, onPick }: { adding: Adding; onPick: (part: Fields) => void }) {
  const offers = useOffers(adding);
  const { place } = useBuilder();
  const [word, setWord] = useState("");
  const [isCreating, setCreating] = useState(false);
  const found = byRank(offers, word);
  return (
    <Stack gap="sm">
      <TextInput
        data-autofocus
        aria-label="Search"
        placeholder="Search by name or description"
        leftSection={<IconSearch size={16} />}
        value={word}
        onChange={(event) => setWord(event.currentTarget.value)}
        onKeyDown={(event) => {
          const [first] = found;
          if (event.key === "Enter" && first && !first.unusable) onPick(first.begun);
        }}
      />
      {place === "tasks" && adding.role !== "processor" && (
        <Button
          variant="light"
          leftSection={<IconPlus size={16} />}
          onClick={() => setCreating(true)}
          style={{ alignSelf: "flex-start" }}
        >
          New stream
        </Button>
      )}
      {isCreating && (
        <NewStream
          name={word}
          columns={[]}
          onCreated={(id) => onPick({ [adding.role === "sink" ? "stream" : "input"]: id })}
          onClose={() => setCreating(false)}
        />
      )}
      {found.length === 0 && <Text c="dimmed">No matches.</Text>}
      {found.map((offer) => (
        <OneOffer key={offer.key} offer={offer} onPick={onPick} />
      ))}
    </Stack>
  );
}

function OneOffer({ offer, onPick }: { offer: Offer; onPick: (part: Fields) => void }) {
  return (
    <div className={classes.offer}>
      <UnstyledButton w="100%" disabled={Boolean(offer.unusable)} onClick={() => onPick(offer.begun)}>
        <Group justify="space-between" wrap="nowrap">
          <Text fw={650}>{offer.title}</Text>
          {offer.guarantee && (
            <Text size="xs" c="dimmed">
              {offer.guarantee}
            </Text>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          <Prose text={offer.unusable ?? offer.about} />
        </Text>
      </UnstyledButton>
      {offer.example && (
        <Spoiler
          maxHeight={0}
          showLabel="Example"
          hideLabel="Hide example"
          styles={{ control: { fontSize: "var(--mantine-font-size-sm)" } }}
        >
          <Code block mt={6} tabIndex={0}>
            {offer.example.text.trimEnd()}
          </Code>
          <Button size="compact-sm" variant="light" mt={6} mb={4} onClick={() => onPick(offer.example!.part)}>
            Add this example<VisuallyHidden>, {offer.title}</VisuallyHidden>
          </Button>
        </Spoiler>
      )}
    </div>
  );
}

function useOffers(adding: Adding): Offer[] {
  const { place, value, catalogue, view } = useBuilder();
  const kind = adding.role === "processor" ? KINDS.Task : adding.role === "sink" ? KINDS.Sink : KINDS.Source;
  const registered = useDocuments(place === "tasks" ? KINDS.Stream : kind).data ?? [];
  if (place === "tasks" && adding.role !== "processor") {
    const field = adding.role === "sink" ? "stream" : "input";
    return registered.map(({ id, name, metadata }) => ({
      key: id,
      title: id,
      about: metadata.description || `The stream ${name}.`,
      begun: { [field]: id },
    }));
  }
  const components = { source: catalogue.sources, processor: catalogue.processors, sink: catalogue.sinks };
  const own = components[adding.role].map(offered);
  const referred = registered.map(({ id, metadata }) => ({
    key: `ref ${id}`,
    title: id,
    about: `Registered ${kind.one}. ${metadata.description ?? ""}`,
    begun: adding.role === "processor" ? { task: id } : { ref: id },
  }));
  if (adding.role !== "processor" || place === "tasks")
    return place === "tasks" ? own : [...own, ...referred];
  // A pipeline has either processors of its own or tasks.
  if (fieldsOf(place, value).step === "tasks") return referred;
  return view.steps.length === 0 ? [...own, ...referred] : own;
}

const offered = (component: Component): Offer => ({
  key: component.type,
  title: component.type,
  about: component.summary ?? "",
  begun: beginning(component.type),
  example: component.example ? { text: component.example, part: exampleOf(component) } : undefined,
  guarantee: component.guarantee,
  unusable: component.error,
});

/** Those that a word finds: by their name before those that only speak of it. */
function byRank(offers: readonly Offer[], word: string): Offer[] {
  const wanted = word.trim().toLowerCase();
  const rank = ({ title, about }: Offer) => {
    const name = title.toLowerCase();
    if (name === wanted) return 0;
    if (name.startsWith(wanted)) return 1;
    return name.includes(wanted) ? 2 : about.toLowerCase().includes(wanted) ? 3 : Number.NaN;
  };
  return offers
    .map((offer) => ({ offer, rank: rank(offer) }))
    .filter((each) => !Number.isNaN(each.rank))
    .sort((one, other) => one.rank - other.rank)
    .map((each) => each.offer);
}
