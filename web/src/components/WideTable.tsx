import { Table, type TableProps } from "@mantine/core";
import classes from "./WideTable.module.css";

interface Props extends TableProps {
  /** The table scrolls sideways where it has less room. */
  least: number;
  withFrame?: boolean;
}

/**
 * A table with more columns than a phone has room for. There each row is a paragraph: `data-label` of a cell is the heading
 * that it has instead of its column, and a cell with `data-line` has a line of its own.
 */
export function WideTable({ least, withFrame, mah, ...table }: Props) {
  return (
    <Table.ScrollContainer
      type="native"
      minWidth={least}
      mah={mah}
      className={withFrame ? `${classes.wide} ${classes.frame}` : classes.wide}
      tabIndex={0}
    >
      <Table {...table} className={classes.table} />
    </Table.ScrollContainer>
  );
}
