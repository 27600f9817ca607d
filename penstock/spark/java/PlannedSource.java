package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source of events that is planned in the Python process of the driver and read by {@link FrameReader}.
 *
 * <p>The option `reading` says what is read; Java does not look into it. Each question to the planner is a JSON object with
 * the question, `reading` and the id of the scan, and so is each answer.
 */
public final class PlannedSource implements TableProvider {
    static final ObjectMapper JSON = new ObjectMapper();
    private static volatile Function planner;

    /** Sets the function that answers questions: a JSON text for a JSON text. */
    public static void connect(Function function) {
        planner = function;
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        throw new UnsupportedOperationException("the schema has to be given");
    }

    public boolean supportsExternalMetadata() {
        return true;
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        return new Planned(schema, (String) properties.get("reading"));
    }

    /** The events, as a table, a scan of it and its execution as a batch. */
    private static final class Planned implements SupportsRead, ScanBuilder, Scan, Batch {
        private final StructType schema;
        private final String reading;

        Planned(StructType schema, String reading) {
            this.schema = schema;
            this.reading = reading;
        }

        public String name() {
            return "penstock";
        }

        public StructType schema() {
            return this.schema;
        }

        public Set capabilities() {
            return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return this;
        }

        public Scan build() {
            return this;
        }

        public StructType readSchema() {
            return this.schema;
        }

        public String description() {
            return "penstock " + this.reading;
        }

        public Batch toBatch() {
            return this;
        }

        public InputPartition[] planInputPartitions() {
            return partitions(ask("partitions", this.reading, "", null, null));
        }

        public PartitionReaderFactory createReaderFactory() {
            return new FrameReader.Factory(this.schema);
        }

        public MicroBatchStream toMicroBatchStream(String checkpoint) {
            return new Stream(this.schema, this.reading);
        }
    }

    /** The events as a stream of micro-batches. */
    private static final class Stream implements MicroBatchStream, SupportsTriggerAvailableNow {
        private final StructType schema;
        private final String reading, id;
        private String planned;
        private InputPartition[] partitions;

        Stream(StructType schema, String reading) {
            this.schema = schema;
            this.reading = reading;
            this.id = UUID.randomUUID().toString();
        }

        public Offset initialOffset() {
            return new Position(this.ask("initial", null, null).get("offset").asText());
        }

        public Offset latestOffset() {
            throw new UnsupportedOperationException("Spark gives a start and a limit");
        }

        /** The planner keeps the limits of the flow, so Spark's own is always that of all there is. */
        public Offset latestOffset(Offset start, ReadLimit limit) {
            JsonNode found = this.ask("latest", start, null).get("offset");
            return found.isNull() ? start : new Position(found.asText());
        }

        public void prepareForTriggerAvailableNow() {
            this.ask("available_now", null, null);
        }

        /** Spark asks more than once for each micro-batch. */
        public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
            String range = start.json() + end.json();
            if (!range.equals(this.planned)) {
                this.partitions = partitions(this.ask("partitions", start, end));
                this.planned = range;
            }
            return this.partitions;
        }

        public PartitionReaderFactory createReaderFactory() {
            return new FrameReader.Factory(this.schema);
        }

        public Offset deserializeOffset(String json) {
            return new Position(json);
        }

        public void commit(Offset end) {
            this.ask("commit", null, end);
        }

        public void stop() {
            this.ask("stop", null, null);
        }

        private JsonNode ask(String question, Offset start, Offset end) {
            return PlannedSource.ask(question, this.reading, this.id, start, end);
        }
    }

    /** A position of the source, as the planner has written it. */
    private static final class Position extends Offset {
        private final String text;

        Position(String text) {
            this.text = text;
        }

        public String json() {
            return this.text;
        }
    }

    private static InputPartition[] partitions(JsonNode answer) {
        JsonNode found = answer.get("partitions");
        InputPartition[] made = new InputPartition[found.size()];
        for (int i = 0; i < made.length; i++) made[i] = new FrameReader.Slice(((JsonNode) found.get(i)).toString());
        return made;
    }

    private static JsonNode ask(String question, String reading, String id, Offset start, Offset end) {
        ObjectNode asked = JSON.createObjectNode();
        asked.put("question", question);
        asked.put("reading", reading);
        asked.put("id", id);
        if (start != null) asked.put("start", start.json());
        if (end != null) asked.put("end", end.json());
        JsonNode answer;
        try {
            answer = JSON.readTree((String) planner.apply(asked.toString()));
        } catch (IOException error) {
            throw new IllegalStateException("the planner's answer is no JSON", error);
        }
        if (answer.has("error")) throw new IllegalStateException(answer.get("error").asText());
        return answer;
    }
}
