import { Badge, Code, Group, Stack, Switch, Text, TextInput, Title } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { Prose } from "#/forms/Prose";
import { inWords, isSet, matching, type Setting, sections, written } from "./settings";
import classes from "./settings.module.css";

/** Every setting with its value, where that came from, and what it is for. */
export function SettingsList({ settings }: { settings: readonly Setting[] }) {
  const [text, setText] = useState("");
  const [changed, setChanged] = useState(false);
  const shown = sections(matching(settings, text, changed));
  return (
    <Stack gap="md">
      <Group>
        <TextInput
          aria-label="Find a setting"
          placeholder="Find a setting"
          leftSection={<IconSearch size={16} />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          w={280}
        />
        <Switch
          label="Only changed settings"
          checked={changed}
          onChange={(event) => setChanged(event.currentTarget.checked)}
        />
      </Group>
      {shown.length === 0 && (
        <Text c="dimmed" role="status">
          {text ? "No setting matches." : "All settings have their default value."}
        </Text>
      )}
      {shown.map((section) => (
        <section key={section.name} aria-label={section.name || "General"}>
          <Title order={3} size="sm" className={classes.section}>
            {section.name ? `[${section.name}]` : "General"}
          </Title>
          <dl className={classes.list}>
            {section.settings.map((setting) => (
              <Row key={setting.name} setting={setting} />
            ))}
          </dl>
        </section>
      ))}
    </Stack>
  );
}

function Row({ setting }: { setting: Setting }) {
  const { name, value, description, variable, origin, choices } = setting;
  const standard = written(setting.default);
  const words = inWords(setting);
  return (
    <div className={classes.row}>
      <dt>
        <Text ff="monospace" size="sm" fw={600} className={classes.wrap}>
          {name}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          <Prose text={description} />
          {choices.length > 0 && <> One of {choices.join(", ")}.</>}
        </Text>
        <Text size="xs" c="dimmed" ff="monospace" className={classes.wrap}>
          {variable}
        </Text>
      </dt>
      <dd className={classes.value}>
        <Group gap="xs">
          <Code className={classes.wrap}>{written(value)}</Code>
          {words && (
            <Text size="sm" c="dimmed">
              {words}
            </Text>
          )}
        </Group>
        <Group gap="xs" mt={4}>
          <Badge variant={isSet(setting) ? "light" : "default"} tt="none" fw={500} className={classes.origin}>
            {origin}
          </Badge>
          {written(value) !== standard && (
            <Text size="xs" c="dimmed" className={classes.wrap}>
              built-in: {standard}
            </Text>
          )}
        </Group>
      </dd>
    </div>
  );
}
