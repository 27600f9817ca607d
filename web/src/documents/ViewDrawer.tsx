import { Anchor, Button, Code, CopyButton, Drawer, Group, Stack, Text } from "@mantine/core";
import { IconCheck, IconCopy, IconExternalLink, IconPencil } from "@tabler/icons-react";
import { Link } from "react-router";
import { Allowed } from "#/access/Allowed";
import { useDocument } from "#/api/documents";
import { type AnyDocument, KINDS, pageOf } from "#/api/kinds";
import { moment } from "#/components/format";
import { StatusBadge } from "#/components/StatusBadge";
import { contentOf, yamlOf } from "./content";
import { Referrers } from "./DeleteDialog";

/** A document to read, beside its grid. */
export function ViewDrawer({ document, onClose }: { document: AnyDocument | null; onClose: () => void }) {
  return (
    <Drawer
      opened={document !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={document ? `${KINDS[document.kind].one} ${document.name}` : ""}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {document && <Body document={document} />}
    </Drawer>
  );
}

function Body({ document }: { document: AnyDocument }) {
  const { data = document } = useDocument(KINDS[document.kind], document.id);
  const text = yamlOf(contentOf({ ...data, kind: document.kind }));
  const page = pageOf(document.kind, document.id);
  return (
    <Stack>
      <Group gap="xs">
        {document.kind !== "Stream" && <StatusBadge status={data.status} phase={data.phase} />}
        <Text size="sm" c="dimmed">
          revision {data.revision}, created {moment(data.created_at)}, updated {moment(data.updated_at)}
        </Text>
      </Group>
      {data.metadata.description && <Text size="sm">{data.metadata.description}</Text>}
      <Group gap="xs">
        <Button component={Link} to={page} size="xs" leftSection={<IconExternalLink size={14} />}>
          Open page
        </Button>
        <Allowed needs="editor">
          <Button
            component={Link}
            to={`${page}/edit`}
            size="xs"
            variant="default"
            leftSection={<IconPencil size={14} />}
          >
            Edit
          </Button>
        </Allowed>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button
              size="xs"
              variant="default"
              onClick={copy}
              leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
            >
              {copied ? "Copied" : "Copy YAML"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Code block style={{ whiteSpace: "pre-wrap" }} tabIndex={0} aria-label="Document as YAML">
        {text}
      </Code>
      {document.kind !== "Pipeline" && (
        <div>
          <Text size="sm" fw={600}>
            Referenced by
          </Text>
          {data.referrers?.length ? (
            <Referrers referrers={data.referrers} />
          ) : (
            <Text size="sm" c="dimmed">
              No other document. See the{" "}
              <Anchor component={Link} to="/topology" size="sm">
                topology
              </Anchor>{" "}
              for the whole data flow.
            </Text>
          )}
        </div>
      )}
    </Stack>
  );
}
