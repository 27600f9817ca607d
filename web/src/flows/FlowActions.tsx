import { ActionIcon, Button, Menu, Tooltip } from "@mantine/core";
import {
  IconCopy,
  IconDots,
  IconHistory,
  IconPencil,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStop,
  IconRefresh,
  IconTrash,
} from "@tabler/icons-react";
import { type ComponentType, useState } from "react";
import { Link, useNavigate } from "react-router";
import type { Verb } from "#/api/documents";
import { type AnyDocument, type Kind, pageOf } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { DeleteDialog } from "#/documents/DeleteDialog";
import { canReplay } from "./api";
import { ReplayDialog } from "./ReplayDialog";
import { type Controls, VERBS, verbsFor } from "./useControls";

interface Props {
  kind: Kind;
  document: AnyDocument;
  controls: Controls;
}

const ICONS: Record<Verb, ComponentType<{ size?: number }>> = {
  pause: IconPlayerPause,
  resume: IconPlayerPlay,
  stop: IconPlayerStop,
  start: IconPlayerPlay,
  restart: IconRefresh,
};

/** What can be done with a document: run it or not, edit, clone, replay, delete. */
export function FlowActions({ kind, document, controls }: Props) {
  const navigate = useNavigate();
  const [replaying, setReplaying] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const mayOperate = useAllowed("operator");
  const mayEdit = useAllowed("editor");
  const mayReplay = mayOperate && canReplay(kind);
  const page = pageOf(kind.name, document.id);
  return (
    <>
      {mayOperate &&
        verbsFor(document).map((verb) => <VerbButton key={verb} verb={verb} controls={controls} />)}
      {mayEdit && (
        <Button
          component={Link}
          to={`${page}/edit`}
          variant="default"
          leftSection={<IconPencil size={16} aria-hidden />}
        >
          Edit
        </Button>
      )}
      {(mayReplay || mayEdit) && (
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="default" size={36} aria-label="More actions">
              <IconDots size={18} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {mayReplay && (
              <Menu.Item leftSection={<IconHistory size={16} />} onClick={() => setReplaying(true)}>
                Replay events
              </Menu.Item>
            )}
            {mayEdit && (
              <>
                <Menu.Item
                  leftSection={<IconCopy size={16} />}
                  component={Link}
                  to={`/${kind.place}/new?clone=${encodeURIComponent(document.id)}`}
                >
                  Clone
                </Menu.Item>
                <Menu.Divider />
                <Menu.Item
                  color="red"
                  leftSection={<IconTrash size={16} />}
                  onClick={() => setDeleting(true)}
                >
                  Delete
                </Menu.Item>
              </>
            )}
          </Menu.Dropdown>
        </Menu>
      )}
      {mayReplay && (
        <ReplayDialog
          kind={kind}
          id={document.id}
          name={document.name}
          open={replaying}
          onClose={() => setReplaying(false)}
        />
      )}
      <DeleteDialog
        documents={deleting ? [document] : null}
        onClose={() => setDeleting(false)}
        onDeleted={() => navigate(`/${kind.place}`)}
      />
    </>
  );
}

function VerbButton({ verb, controls }: { verb: Verb; controls: Controls }) {
  const { label, about } = VERBS[verb];
  const Icon = ICONS[verb];
  return (
    <Tooltip label={about}>
      <Button
        variant={verb === "start" || verb === "resume" ? "filled" : "default"}
        leftSection={<Icon size={16} aria-hidden />}
        loading={controls.pending === verb}
        disabled={controls.pending !== null && controls.pending !== verb}
        onClick={() => controls.act(verb)}
      >
        {label}
      </Button>
    </Tooltip>
  );
}
