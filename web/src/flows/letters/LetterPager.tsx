import { Button, Group, Text } from "@mantine/core";

interface Props {
  /** The offsets at which the pages begin that led here; the last one is shown. */
  pages: readonly number[];
  next: number | null;
  onChange: (pages: number[]) => void;
}

/** Back and forth through letters, in the order in which they came. */
export function LetterPager({ pages, next, onChange }: Props) {
  if (pages.length === 1 && next === null) return null;
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        disabled={pages.length === 1}
        onClick={() => onChange(pages.slice(0, -1))}
      >
        Earlier
      </Button>
      <Text size="sm" c="dimmed">
        page {pages.length}
      </Text>
      <Button
        size="xs"
        variant="default"
        disabled={next === null}
        onClick={() => next !== null && onChange([...pages, next])}
      >
        Later
      </Button>
    </Group>
  );
}
