package penstock;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes the values of a column by the rules of streams. A row has the columns of the schema, which are null if the
 * value doesn't match it, and then the value with the reason. `json_values.py` makes a column of the decoder.
 */
public final class JsonValue implements java.io.Serializable {
    private final StructType columns;
    private final long unit;
    private transient JsonEvent event;

    /** `columns` is the schema as JSON; `unit` is the unit of integer TIMESTAMPs in microseconds, or 0. */
    public JsonValue(String columns, long unit) {
        this.columns = (StructType) DataType.fromJson(columns);
        this.unit = unit;
    }

    public synchronized InternalRow decode(byte[] value) {
        if (this.event == null) this.event = new JsonEvent(this.columns, this.unit);
        int width = this.columns.length();
        Object[] row = new Object[width + 1];
        if (!this.event.open(value, value.length)) {
            row[width] = JsonEvent.row("not_json", "not JSON: the value is empty", UTF8String.fromBytes(value));
            return new GenericInternalRow(row);
        }
        Object[] found = this.event.values();
        if (found == null) row[width] = this.event.corrupt();
        else System.arraycopy(found, 0, row, 0, width);
        return new GenericInternalRow(row);
    }
}
