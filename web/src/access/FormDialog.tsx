import { Button, Group, Modal, Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { Failure } from "#/components/Problems";

interface Props {
  title: string;
  /** What the button says. */
  action: string;
  isDangerous?: boolean;
  /** What the button sends: whether that is under way, and why it was refused. */
  request: { isPending: boolean; error: unknown };
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A dialog with fields or a question, a button, and what the server says against it. */
export function FormDialog({ title, action, isDangerous, request, onSubmit, onClose, children }: Props) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <Stack component="form" onSubmit={submit} gap="sm">
        {children}
        <Failure error={request.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" color={isDangerous ? "red" : undefined} loading={request.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
