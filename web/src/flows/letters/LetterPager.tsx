import { Button, Group, Text } from "@mantine/core";

interface Props {
  /** The offsets before which the pages are that led here; the last one is shown. */
  pages: readonly (number | null)[];
  next: number | null;
  onChange: (pages: (number | null)[]) => void;
}

/** Back and forth through letters, newest first. */
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
        Newer
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
        Older
      </Button>
    </Group>
  );
}
