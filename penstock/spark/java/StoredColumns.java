package penstock;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.compression.CommonsCompressionFactory;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.TypeLayout;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns of a frame's body. A column is decompressed when its first value is asked for. */
final class StoredColumns implements Closeable {
    private final BufferAllocator allocator;
    private final int from, size;
    private final Body body;
    private final Map fields = new HashMap(); // by name: the field, its first node and its first buffer
    private final List opened = new ArrayList();

    /** The columns of the rows from `from` on, `size` of them. */
    StoredColumns(InputStream stream, BufferAllocator allocator, int from, int size) throws IOException {
        this.allocator = allocator;
        this.from = from;
        this.size = size;
        this.body = new Body(stream, allocator);
        this.body.loadNextBatch();
        int[] next = {0, 0};
        for (Object each : this.body.getVectorSchemaRoot().getSchema().getFields()) {
            Field field = (Field) each;
            int node = next[0], buffer = next[1];
            skip(field, next);
            this.fields.put(field.getName(), new Object[] {field, node, next[0], buffer, next[1]});
        }
    }

    /** Moves past the nodes and the buffers of a field. */
    private static void skip(Field field, int[] next) {
        next[0]++;
        next[1] += TypeLayout.getTypeBufferCount(field.getType());
        for (Object child : field.getChildren()) skip((Field) child, next);
    }

    /** The column of a name; NULL in all rows if the frame does not have it. */
    ColumnVector column(String name, DataType type) {
        if (!this.fields.containsKey(name)) return FrameColumns.of(null, type, this.size);
        return new Deferred(this, name, type);
    }

    private ColumnVector load(String name, DataType type) {
        Object[] place = (Object[]) this.fields.get(name);
        ArrowRecordBatch all = this.body.held;
        List nodes = all.getNodes().subList((Integer) place[1], (Integer) place[2]);
        List buffers = all.getBuffers().subList((Integer) place[3], (Integer) place[4]);
        VectorSchemaRoot root = new VectorSchemaRoot(
            Collections.singletonList(place[0]), Collections.singletonList(((Field) place[0]).createVector(this.allocator)), 0);
        this.opened.add(root);
        ArrowRecordBatch own = new ArrowRecordBatch(all.getLength(), nodes, buffers, all.getBodyCompression(), false);
        try {
            new VectorLoader(root, CommonsCompressionFactory.INSTANCE).load(own);
        } finally {
            own.close();
        }
        if (this.size < all.getLength()) {
            root = root.slice(this.from, this.size);
            this.opened.add(root);
        }
        return FrameColumns.of((FieldVector) root.getVector(0), type, this.size);
    }

    public void close() throws IOException {
        for (int i = this.opened.size() - 1; i >= 0; i--) ((VectorSchemaRoot) this.opened.get(i)).close();
        this.opened.clear();
        if (this.body.held != null) this.body.held.close();
        this.body.close();
    }

    /** A body whose record batch stays as it is stored. */
    private static final class Body extends ArrowStreamReader {
        private ArrowRecordBatch held;

        Body(InputStream stream, BufferAllocator allocator) {
            super(stream, allocator, CommonsCompressionFactory.INSTANCE);
        }

        protected void loadRecordBatch(ArrowRecordBatch batch) {
            this.held = batch;
        }
    }

    /** A column that is loaded by the first question about it. */
    private static final class Deferred extends ColumnVector {
        private final StoredColumns home;
        private final String name;
        private ColumnVector column;

        Deferred(StoredColumns home, String name, DataType type) {
            super(type);
            this.home = home;
            this.name = name;
        }

        private ColumnVector loaded() {
            if (this.column == null) this.column = this.home.load(this.name, this.dataType());
            return this.column;
        }

        public void close() {}

        public boolean hasNull() {
            return this.loaded().hasNull();
        }

        public int numNulls() {
            return this.loaded().numNulls();
        }

        public boolean isNullAt(int row) {
            return this.loaded().isNullAt(row);
        }

        public boolean getBoolean(int row) {
            return this.loaded().getBoolean(row);
        }

        public byte getByte(int row) {
            return this.loaded().getByte(row);
        }

        public short getShort(int row) {
            return this.loaded().getShort(row);
        }

        public int getInt(int row) {
            return this.loaded().getInt(row);
        }

        public long getLong(int row) {
            return this.loaded().getLong(row);
        }

        public float getFloat(int row) {
            return this.loaded().getFloat(row);
        }

        public double getDouble(int row) {
            return this.loaded().getDouble(row);
        }

        public ColumnarArray getArray(int row) {
            return this.loaded().getArray(row);
        }

        public ColumnarMap getMap(int row) {
            return this.loaded().getMap(row);
        }

        public Decimal getDecimal(int row, int precision, int scale) {
            return this.loaded().getDecimal(row, precision, scale);
        }

        public UTF8String getUTF8String(int row) {
            return this.loaded().getUTF8String(row);
        }

        public byte[] getBinary(int row) {
            return this.loaded().getBinary(row);
        }

        public ColumnVector getChild(int ordinal) {
            return this.loaded().getChild(ordinal);
        }
    }
}
