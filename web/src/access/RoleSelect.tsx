import { Select } from "@mantine/core";
import type { TokenRole } from "./types";

const ABOUT: Record<TokenRole, string> = {
  viewer: "Reads everything except users, the audit log and the settings.",
  operator: "Also pauses, starts and restarts flows, replays events, repairs dead letters and runs tests.",
  editor: "Also creates, changes and deletes documents and uploads bundles.",
  admin: "Also manages users, all tokens, workers and settings, and reads the audit log.",
  ingest: "Only sends events to one source.",
  worker: "Only runs flows for this server, as penstock worker on another machine.",
};

interface Props<R extends TokenRole> {
  roles: readonly R[];
  value: R;
  onChange: (role: R) => void;
}

/** One of the roles, with what it may do. */
export function RoleSelect<R extends TokenRole>({ roles, value, onChange }: Props<R>) {
  return (
    <Select
      label="Role"
      description={ABOUT[value]}
      data={roles}
      value={value}
      onChange={(next) => next && onChange(next as R)}
      allowDeselect={false}
      comboboxProps={{ withinPortal: true }}
    />
  );
}
