import { Badge, SimpleGrid, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import type { Place } from "#/api/kinds";
import { Prose } from "#/forms/Prose";
import classes from "./builder.module.css";
import { emptyOf, type Template, templatesOf } from "./templates";

interface Props {
  place: Place;
  onTemplate: (template: Template) => void;
  onEmpty: (text: string) => void;
  onPaste: () => void;
}

/** Documents to begin with: an empty one, pasted text, or a template. */
export function Gallery({ place, onTemplate, onEmpty, onPaste }: Props) {
  const [word, setWord] = useState("");
  const found = templatesOf(place).filter((each) => mentions(each, word));
  return (
    <Stack gap="md">
      <TextInput
        aria-label="Search templates"
        placeholder="Search templates"
        maw={360}
        leftSection={<IconSearch size={16} />}
        value={word}
        onChange={({ currentTarget }) => setWord(currentTarget.value)}
      />
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        <Card title="Empty" about="Start from an empty canvas." onClick={() => onEmpty(emptyOf(place))} />
        <Card
          title="From YAML"
          about="Paste a document as YAML or JSON. Comments are preserved while you edit."
          onClick={onPaste}
        />
        {found.map((template) => (
          <Card
            key={template.title}
            title={template.title}
            about={template.about}
            onClick={() => onTemplate(template)}
          >
            <Badge variant="default" tt="none" className={classes.parts}>
              {template.parts}
            </Badge>
          </Card>
        ))}
      </SimpleGrid>
      {found.length === 0 && <Text c="dimmed">No matches.</Text>}
    </Stack>
  );
}

function Card(props: { title: string; about: string; onClick: () => void; children?: ReactNode }) {
  return (
    <UnstyledButton className={classes.card} onClick={props.onClick}>
      <Text fw={650}>{props.title}</Text>
      <Text size="sm" c="dimmed" flex={1}>
        <Prose text={props.about} />
      </Text>
      {props.children}
    </UnstyledButton>
  );
}

const mentions = ({ title, about, parts }: Template, word: string) =>
  `${title} ${about} ${parts}`.toLowerCase().includes(word.trim().toLowerCase());
