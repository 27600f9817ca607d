package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.zip.CRC32C;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads the events of one partition: pieces of log files, each a sequence of frames as `penstock/streams/frames.py` writes
 * them. A frame that is damaged or gone is skipped and noted in the spool, or fails the task, as the slice says.
 */
public final class FrameReader implements PartitionReader {
    private static final int HEADER = 52, CHECKED = 8, MAGIC = 0x31465350; // "PSF1", little-endian
    private static final String OFFSET = "_offset", TIME = "_time";
    private static final String FAULT = "penstock.frames.faults.Fault: [gap] ";
    private static final int SPOOL = 9000; // numbers below are those of steps

    private final StructType schema;
    private final JsonNode slice;
    private final byte[] header = new byte[HEADER];
    private int piece = 0;
    private DataInputStream file;
    private long at, end, first, next;
    private StoredColumns stored;
    private BufferAllocator allocator;
    private ColumnarBatch batch;

    FrameReader(StructType schema, JsonNode slice) {
        this.schema = schema;
        this.slice = slice;
    }

    /** A partition: `{"gap": "skip" or "fail", "raw": true or false, "pieces": […]}`, where a piece is
     * `{path, at, end, first, next}`, or in place of the path has the frames themselves as `data`, in base64, or the `topic`
     * that has them (`kafka/KafkaFrames.java`). Events that are made, not read, have a form of their own (`CountedRows.java`). */
    public static final class Slice implements InputPartition {
        private final String text;

        Slice(String text) {
            this.text = text;
        }
    }

    /** Makes readers in the tasks. */
    public static final class Factory implements PartitionReaderFactory {
        private final StructType schema;

        Factory(StructType schema) {
            this.schema = schema;
        }

        public PartitionReader createReader(InputPartition slice) {
            throw new UnsupportedOperationException("events are read in columns");
        }

        public PartitionReader createColumnarReader(InputPartition slice) {
            try {
                JsonNode found = PlannedSource.JSON.readTree(((Slice) slice).text);
                if (!found.has("pieces")) return new CountedRows(this.schema, found);
                return new FrameReader(this.schema, found);
            } catch (IOException error) {
                throw new IllegalStateException("the slice is no JSON", error);
            }
        }

        public boolean supportColumnarReads(InputPartition slice) {
            return true;
        }
    }

    public boolean next() throws IOException {
        while (true) {
            this.release();
            if (this.file == null || this.at >= this.end) {
                if (!this.openPiece()) return false;
            }
            if (this.readFrame()) return true;
        }
    }

    public Object get() {
        return this.batch;
    }

    public void close() throws IOException {
        this.release();
        if (this.allocator != null) this.allocator.close();
        this.allocator = null;
        if (this.file != null) this.file.close();
        this.file = null;
    }

    /** Opens the next piece that is there; false after the last one. */
    private boolean openPiece() throws IOException {
        JsonNode pieces = this.slice.get("pieces");
        while (true) {
            if (this.file != null) {
                if (this.first < this.next) this.lose(this.next, "missing");
                this.file.close();
            }
            this.file = null;
            if (this.piece >= pieces.size()) return false;
            JsonNode found = (JsonNode) pieces.get(this.piece++);
            this.at = found.get("at").asLong();
            this.end = found.get("end").asLong();
            this.first = found.get("first").asLong();
            this.next = found.get("next").asLong();
            try {
                this.file = new DataInputStream(open(found, this.at));
                return true;
            } catch (FileNotFoundException gone) {
                this.lose(this.next, "evicted");
            }
        }
    }

    private static InputStream open(JsonNode piece, long at) throws IOException {
        if (piece.has("data")) return new ByteArrayInputStream(Base64.getDecoder().decode(piece.get("data").asText()));
        if (piece.has("topic")) return inKafka(piece);
        return DriverFiles.open(piece.get("path").asText(), at, piece.get("end").asLong());
    }

    /** Frames in Kafka, whose client is there only where it is needed. */
    private static InputStream inKafka(JsonNode piece) throws IOException {
        try {
            Class found = Class.forName("penstock.KafkaFrames", true, Thread.currentThread().getContextClassLoader());
            return (InputStream) found.getConstructor(new Class[] {JsonNode.class}).newInstance(new Object[] {piece});
        } catch (ReflectiveOperationException error) {
            throw new IOException("frames in Kafka cannot be read: " + error.getCause(), error);
        }
    }

    /** Reads the frame at the current position; false if it has no events of the piece. */
    private boolean readFrame() throws IOException {
        long base, time;
        int count;
        byte[] rest;
        int meta;
        try {
            this.file.readFully(this.header);
            ByteBuffer fields = ByteBuffer.wrap(this.header).order(ByteOrder.LITTLE_ENDIAN);
            if (fields.getInt(0) != MAGIC || (int) checksum(this.header, CHECKED, HEADER) != fields.getInt(4)) {
                this.skipPiece("wrong checksum of a header");
                return false;
            }
            base = fields.getLong(8);
            time = fields.getLong(16);
            count = fields.getInt(24);
            meta = fields.getInt(28);
            int body = fields.getInt(32);
            this.at += HEADER + meta + body;
            rest = new byte[meta + body];
            this.file.readFully(rest);
            if (count == 0 || base + count <= this.first || base >= this.next) return false;
            if (base > this.first) this.lose(base, "missing");
            if ((int) checksum(rest, 0, rest.length) != fields.getInt(36)) {
                this.lose(Math.min(base + count, this.next), "wrong checksum");
                return false;
            }
        } catch (EOFException cut) {
            this.skipPiece("missing");
            return false;
        }
        this.load(rest, meta, base, count, time);
        this.first = Math.min(base + count, this.next);
        return true;
    }

    /** Gives up the rest of the piece. */
    private void skipPiece(String reason) throws IOException {
        this.lose(this.next, reason);
        this.at = this.end;
    }

    private void load(byte[] rest, int meta, long base, int count, long time) throws IOException {
        if (this.allocator == null) {
            this.allocator = ArrowUtils.rootAllocator().newChildAllocator("frames", 0L, Long.MAX_VALUE);
        }
        int from = (int) Math.max(0, this.first - base);
        int size = (int) Math.min(count, this.next - base) - from;
        ByteArrayInputStream body = new ByteArrayInputStream(rest, meta, rest.length - meta);
        this.stored = new StoredColumns(body, this.allocator, from, size);
        ColumnVector[] columns = new ColumnVector[this.schema.length()];
        for (int i = 0; i < columns.length; i++) {
            StructField field = this.schema.fields()[i];
            if (field.name().equals(OFFSET)) {
                columns[i] = new FrameColumns.Sequence(field.dataType(), base + from, 1);
            } else if (field.name().equals(TIME)) {
                columns[i] = new FrameColumns.Sequence(field.dataType(), time, 0);
            } else {
                columns[i] = this.stored.column(this.storedName(field.name()), field.dataType());
            }
        }
        this.batch = new ColumnarBatch(columns, size);
    }

    /** The name under which a column is stored: raw streams have key and headers under other names. */
    private String storedName(String name) {
        boolean renamed = this.slice.get("raw").asBoolean() && (name.equals("key") || name.equals("headers"));
        return renamed ? "_" + name : name;
    }

    private void release() throws IOException {
        this.batch = null;
        if (this.stored != null) this.stored.close();
        this.stored = null;
    }

    /** Skips the events up to an offset, which cannot be read. */
    private void lose(long until, String reason) throws IOException {
        String events = "offsets " + this.first + " to " + (until - 1) + " of the stream cannot be read any more: " + reason;
        if (this.slice.get("gap").asText().equals("fail")) throw new IllegalStateException(FAULT + events);
        String note = "{\"$note\":{\"kind\":\"lost\",\"step\":\"source\",\"message\":\"" + events + "\",\"taken\":" + (until - this.first) + "}}";
        Spool.note(SPOOL, note);
        this.first = until;
    }

    private static long checksum(byte[] data, int from, int to) {
        CRC32C sum = new CRC32C();
        sum.update(data, from, to - from);
        return sum.getValue();
    }
}
