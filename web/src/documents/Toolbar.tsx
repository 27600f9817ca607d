import { Button, CloseButton, Group, Menu, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import {
  IconDownload,
  IconFilterOff,
  IconPlus,
  IconSearch,
  IconTrash,
  IconUpload,
} from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { Link } from "react-router";
import type { AnyDocument, Kind } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { BulkActions } from "./BulkActions";
import { ColumnsMenu } from "./ColumnsMenu";
import { bundleOf, saveFile, yamlOf } from "./content";

interface Props {
  kind: Kind;
  search: string;
  onSearch: (text: string) => void;
  filtered: boolean;
  onClear: () => void;
  selected: readonly AnyDocument[];
  onDelete: () => void;
  onUpload: () => void;
  hidden: readonly string[];
  onHidden: (hidden: string[]) => void;
}

/** Search, create, download and upload, and what can be done with the rows that are selected. */
export function Toolbar(props: Props) {
  const { kind, search, onSearch, filtered, onClear, selected, onDelete, onUpload } = props;
  const mayEdit = useAllowed("editor");
  const mayOperate = useAllowed("operator");
  return (
    <Group gap="xs" justify="space-between" role="toolbar" aria-label={kind.title}>
      <Group gap="xs" style={{ flex: "1 1 300px" }}>
        <SearchBox kind={kind} search={search} onSearch={onSearch} />
        {filtered && (
          <Button variant="subtle" onClick={onClear} leftSection={<IconFilterOff size={16} />}>
            Clear filters
          </Button>
        )}
        {mayOperate && kind.runs && <BulkActions kind={kind} selected={selected} />}
        {mayEdit && selected.length > 0 && (
          <Button variant="light" color="red" onClick={onDelete} leftSection={<IconTrash size={16} />}>
            Delete {selected.length}
          </Button>
        )}
      </Group>
      <Group gap="xs">
        <ColumnsMenu kind={kind} hidden={props.hidden} onHidden={props.onHidden} />
        <Download kind={kind} selected={selected} />
        {mayEdit && (
          <>
            <Button variant="default" onClick={onUpload} leftSection={<IconUpload size={16} />}>
              Upload
            </Button>
            <Button component={Link} to={`/${kind.place}/new`} leftSection={<IconPlus size={16} />}>
              Create
            </Button>
          </>
        )}
      </Group>
    </Group>
  );
}

function SearchBox({ kind, search, onSearch }: Pick<Props, "kind" | "search" | "onSearch">) {
  const [text, setText] = useState(search);
  const told = useRef(search);
  const tell = useDebouncedCallback((value: string) => {
    told.current = value;
    onSearch(value);
  }, 150);
  useEffect(() => {
    if (search !== told.current) setText(search); // another page or the way back has changed it
    told.current = search;
  }, [search]);
  const change = (value: string) => {
    setText(value);
    tell(value);
  };
  return (
    <TextInput
      type="search"
      value={text}
      onChange={({ currentTarget }) => change(currentTarget.value)}
      onKeyDown={({ key }) => key === "Escape" && change("")}
      placeholder={`Search ${kind.title.toLowerCase()}`}
      aria-label={`Search ${kind.title.toLowerCase()}`}
      leftSection={<IconSearch size={16} />}
      rightSection={text && <CloseButton size="sm" aria-label="Clear search" onClick={() => change("")} />}
      style={{ flex: "0 1 320px" }}
    />
  );
}

function Download({ kind, selected }: Pick<Props, "kind" | "selected">) {
  const some = selected.length > 0;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} />}>
          Download
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>All documents</Menu.Label>
        <Menu.Item component="a" href="/bundle?format=json" download="penstock-bundle.json">
          JSON
        </Menu.Item>
        <Menu.Item component="a" href="/bundle?format=yaml" download="penstock-bundle.yaml">
          YAML
        </Menu.Item>
        <Menu.Label>{some ? `${selected.length} selected` : "Selected rows (none)"}</Menu.Label>
        <Menu.Item
          disabled={!some}
          onClick={() =>
            saveFile(`${kind.place}.json`, JSON.stringify(bundleOf(selected), null, 2), "application/json")
          }
        >
          Selected, as JSON
        </Menu.Item>
        <Menu.Item
          disabled={!some}
          onClick={() => saveFile(`${kind.place}.yaml`, yamlOf(bundleOf(selected)), "application/yaml")}
        >
          Selected, as YAML
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
