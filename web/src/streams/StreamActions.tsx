import { Button, Menu } from "@mantine/core";
import { IconCopy, IconHistory, IconPencil, IconTerminal2, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { type AnyDocument, KINDS, pageOf } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { lastEvents } from "#/console/tables";
import { DeleteDialog } from "#/documents/DeleteDialog";
import { ReplayDialog } from "#/flows/ReplayDialog";
import { replayable, type User } from "./users";

/** Edit, clone, delete, and replay through one of the flows that read the stream. */
export function StreamActions({ document, readers }: { document: AnyDocument; readers: readonly User[] }) {
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const [through, setThrough] = useState<User | null>(null);
  const able = replayable(readers);
  const mayOperate = useAllowed("operator");
  const mayEdit = useAllowed("editor");
  const page = pageOf("Stream", document.id);
  return (
    <>
      {mayOperate && (
        <Button
          component={Link}
          to={`/sql?query=${encodeURIComponent(lastEvents(document.id))}`}
          variant="default"
          leftSection={<IconTerminal2 size={16} />}
        >
          Query
        </Button>
      )}
      {mayOperate && (
        <Menu position="bottom-end" disabled={able.length === 0}>
          <Menu.Target>
            <Button
              variant="default"
              leftSection={<IconHistory size={16} />}
              disabled={able.length === 0}
              title={able.length === 0 ? "No pipeline or task reads this stream" : undefined}
            >
              Replay
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Label>Events of this stream once more through</Menu.Label>
            {able.map((reader) => (
              <Menu.Item key={reader.page} onClick={() => setThrough(reader)}>
                {KINDS[reader.kind].one} {reader.name}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {mayEdit && (
        <>
          <Button
            component={Link}
            to={`${page}/edit`}
            variant="default"
            leftSection={<IconPencil size={16} />}
          >
            Edit
          </Button>
          <Button
            component={Link}
            to={`/streams/new?clone=${encodeURIComponent(document.id)}`}
            variant="default"
            leftSection={<IconCopy size={16} />}
          >
            Clone
          </Button>
          <Button
            variant="light"
            color="red"
            leftSection={<IconTrash size={16} />}
            onClick={() => setDeleting(true)}
          >
            Delete
          </Button>
        </>
      )}
      <DeleteDialog
        documents={deleting ? [document] : null}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate("/streams")}
      />
      {through && (
        <ReplayDialog
          kind={KINDS[through.kind]}
          id={through.id}
          name={through.name}
          open
          onClose={() => setThrough(null)}
        />
      )}
    </>
  );
}
