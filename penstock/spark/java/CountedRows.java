package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Makes the events of one batch of the `generate` source: `{first, next, from_us, to_us}` are their numbers, and the moments
 * between which they lie at equal distances. A schema has a number first, then a time; either may be left out.
 */
final class CountedRows implements PartitionReader {
    private final ColumnarBatch batch;
    private boolean isRead = false;

    CountedRows(StructType schema, JsonNode slice) {
        long first = slice.get("first").asLong(), from = slice.get("from_us").asLong();
        int count = (int) (slice.get("next").asLong() - first);
        long span = slice.get("to_us").asLong() - from;
        ColumnVector[] columns = new ColumnVector[schema.length()];
        for (int i = 0; i < columns.length; i++) {
            DataType type = schema.fields()[i].dataType();
            columns[i] = schema.fields()[i].name().equals("time")
                    ? (ColumnVector) new FrameColumns.Spread(type, from, span, count)
                    : (ColumnVector) new FrameColumns.Sequence(type, first, 1);
        }
        this.batch = new ColumnarBatch(columns, count);
    }

    public boolean next() {
        boolean had = this.isRead;
        this.isRead = true;
        return !had;
    }

    public Object get() {
        return this.batch;
    }

    public void close() {}
}
