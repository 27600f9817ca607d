import { Button, CopyButton, Group, Stack } from "@mantine/core";
import { IconCheck, IconCopy, IconDownload } from "@tabler/icons-react";
import type { AnyDocument } from "#/api/kinds";
import { contentOf, saveFile, yamlOf } from "#/documents/content";
import { LazyCodeEditor } from "#/editors/LazyCodeEditor";

/** The document as one would write it, to read and to take away. */
export default function YamlTab({ document }: { document: AnyDocument }) {
  const text = yamlOf(contentOf(document));
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button
              size="xs"
              variant="default"
              leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
              onClick={copy}
            >
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} />}
          onClick={() => saveFile(`${document.id}.yaml`, text, "application/yaml")}
        >
          Download
        </Button>
      </Group>
      <LazyCodeEditor language="yaml" value={text} readOnly label={`${document.name} as YAML`} />
    </Stack>
  );
}
