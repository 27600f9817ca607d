import { MultiSelect } from "@mantine/core";

interface Props {
  label: string;
  data: readonly (string | { value: string; label: string })[];
  value: readonly string[];
  onChange: (value: string[]) => void;
  hint?: string;
}

/** A choice of some of many; of none means all. */
export function Picks({ label, data, value, onChange, hint }: Props) {
  return (
    <MultiSelect
      label={label}
      description={hint}
      placeholder={value.length === 0 ? "all" : undefined}
      data={[...data]}
      value={[...value]}
      onChange={onChange}
      clearable
      clearButtonProps={{ "aria-label": `Clear ${label.toLowerCase()}` }}
      searchable={data.length > 8}
      // Inside a popover: a list elsewhere on the page would count as outside, and close it.
      comboboxProps={{ withinPortal: false }}
    />
  );
}
