package penstock;

import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns of a frame as Spark reads them. */
final class FrameColumns {
    private FrameColumns() {}

    /** A stored column; NULL in all rows if the frame does not have it. */
    static ColumnVector of(FieldVector stored, DataType type, int rows) {
        if (stored == null) {
            ConstantColumnVector nulls = new ConstantColumnVector(rows, type);
            nulls.setNull();
            return nulls;
        }
        if (stored instanceof VarBinaryVector && type instanceof StringType) {
            return new Text(type, (VarBinaryVector) stored);
        }
        return new ArrowColumnVector(stored);
    }

    /** A column that has only some kinds of values. */
    private abstract static class Column extends ColumnVector {
        Column(DataType type) {
            super(type);
        }

        public void close() {}

        public boolean hasNull() {
            return false;
        }

        public int numNulls() {
            return 0;
        }

        public boolean isNullAt(int row) {
            return false;
        }

        public boolean getBoolean(int row) {
            throw new UnsupportedOperationException();
        }

        public byte getByte(int row) {
            throw new UnsupportedOperationException();
        }

        public short getShort(int row) {
            throw new UnsupportedOperationException();
        }

        public int getInt(int row) {
            throw new UnsupportedOperationException();
        }

        public long getLong(int row) {
            throw new UnsupportedOperationException();
        }

        public float getFloat(int row) {
            throw new UnsupportedOperationException();
        }

        public double getDouble(int row) {
            throw new UnsupportedOperationException();
        }

        public ColumnarArray getArray(int row) {
            throw new UnsupportedOperationException();
        }

        public ColumnarMap getMap(int row) {
            throw new UnsupportedOperationException();
        }

        public Decimal getDecimal(int row, int precision, int scale) {
            throw new UnsupportedOperationException();
        }

        public UTF8String getUTF8String(int row) {
            throw new UnsupportedOperationException();
        }

        public byte[] getBinary(int row) {
            throw new UnsupportedOperationException();
        }

        public ColumnVector getChild(int ordinal) {
            throw new UnsupportedOperationException();
        }
    }

    /** Integers that begin at a value and grow by a step from row to row. */
    static final class Sequence extends Column {
        private final long first;
        private final int step;

        Sequence(DataType type, long first, int step) {
            super(type);
            this.first = first;
            this.step = step;
        }

        public long getLong(int row) {
            return this.first + (long) row * this.step;
        }
    }

    /** Values at equal distances: of `count`, the first is `from`, and the one behind the last would be `from + span`. */
    static final class Spread extends Column {
        private final long from, span;
        private final int count;

        Spread(DataType type, long from, long span, int count) {
            super(type);
            this.from = from;
            this.span = span;
            this.count = count;
        }

        public long getLong(int row) {
            return this.from + this.span * row / this.count;
        }
    }

    /** Stored bytes as text. They are not checked: Spark keeps any bytes in a string, and gives them back. */
    private static final class Text extends Column {
        private final VarBinaryVector stored;

        Text(DataType type, VarBinaryVector stored) {
            super(type);
            this.stored = stored;
        }

        public boolean hasNull() {
            return this.stored.getNullCount() > 0;
        }

        public int numNulls() {
            return this.stored.getNullCount();
        }

        public boolean isNullAt(int row) {
            return this.stored.isNull(row);
        }

        public UTF8String getUTF8String(int row) {
            if (this.stored.isNull(row)) return null;
            int from = this.stored.getStartOffset(row), to = this.stored.getEndOffset(row);
            return UTF8String.fromAddress(null, this.stored.getDataBuffer().memoryAddress() + from, to - from);
        }
    }
}
