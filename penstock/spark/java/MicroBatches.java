package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper;
import org.apache.spark.sql.connector.read.streaming.Offset;
import scala.Option;
import scala.Tuple2;

/** What a query knows of its current micro-batch. Each answer is one JSON text, since each call from Python takes time. */
public final class MicroBatches {
    private static final String QUERY = "sql.streaming.queryId";
    private static final byte[] END = {-1, -1, -1, -1, 0, 0, 0, 0}; // of an Arrow stream

    private MicroBatches() {}

    /** The query of this thread and its run; the offsets of the first source between which the batch lies, as texts; its
     * watermark in milliseconds. */
    public static String describe(SparkSession spark) {
        String query = spark.sparkContext().getLocalProperty(QUERY);
        StreamExecution stream = stream(spark, query);
        SparkDataStream source = (SparkDataStream) stream.sources().head();
        ObjectNode found = PlannedSource.JSON.createObjectNode();
        found.put("query", query);
        found.put("run", stream.runId().toString());
        put(found, "committed", stream.committedOffsets(), source);
        put(found, "available", stream.availableOffsets(), source);
        found.put("watermark", stream.lastExecution().offsetSeqMetadata().batchWatermarkMs());
        return found.toString();
    }

    /** Sets local properties of this thread, a JSON object, and resets the observed metrics of the batch. */
    public static void begin(SparkSession spark, String query, String properties) throws IOException {
        Iterator fields = PlannedSource.JSON.readTree(properties).fields();
        while (fields.hasNext()) {
            Map.Entry field = (Map.Entry) fields.next();
            spark.sparkContext().setLocalProperty((String) field.getKey(), ((JsonNode) field.getValue()).asText());
        }
        stream(spark, query).lastExecution().executedPlan().resetMetrics();
    }

    /** Computes a frame, and returns its rows as an Arrow stream that begins with the given schema; if it has more bytes than
     * `limit`, it is written to the file, and nothing is returned. With the id of a query, the frame is its whole batch:
     * then the plan of the batch is run as it is, without planning the frame that Spark has wrapped it in. */
    public static byte[] collect(SparkSession spark, String query, Dataset frame, byte[] schema, String file, int limit)
            throws IOException {
        byte[][] batches = (byte[][]) rows(spark, query, frame).collect();
        long size = schema.length + END.length;
        for (int i = 0; i < batches.length; i++) size += batches[i].length;
        ByteArrayOutputStream bytes = size <= limit ? new ByteArrayOutputStream((int) size) : null;
        OutputStream target = bytes != null ? bytes : new FileOutputStream(file);
        try {
            target.write(schema);
            for (int i = 0; i < batches.length; i++) target.write(batches[i]);
            target.write(END);
        } finally {
            target.close();
        }
        return bytes != null ? bytes.toByteArray() : new byte[0];
    }

    /** Computes a frame as `collect` does, and gives its rows to a writer in the tasks: Arrow batches without their schema. Returns
     * the writer's answers, in the order of the partitions, each after its length in four bytes. */
    public static byte[] write(SparkSession spark, String query, Dataset frame, FlatMapFunction writer) {
        List answers = rows(spark, query, frame).toJavaRDD().mapPartitions(writer).collect();
        int size = 0;
        for (int i = 0; i < answers.size(); i++) size += 4 + ((byte[]) answers.get(i)).length;
        ByteBuffer made = ByteBuffer.allocate(size);
        for (int i = 0; i < answers.size(); i++) {
            byte[] answer = (byte[]) answers.get(i);
            made.putInt(answer.length).put(answer);
        }
        return made.array();
    }

    private static RDD rows(SparkSession spark, String query, Dataset frame) {
        return query == null
            ? frame.toArrowBatchRdd()
            : frame.toArrowBatchRdd(stream(spark, query).lastExecution().executedPlan());
    }

    /** The observed metrics of the computed batch by name, each row as a JSON text. The properties stay: a job of a sink
     * computes again what a lost executor has cached. Only the spool is closed, since it has the notes already. */
    public static String end(SparkSession spark, String query) throws IOException {
        if (spark.sparkContext().getLocalProperty(Spool.DIRECTORY) != null) {
            spark.sparkContext().setLocalProperty(Spool.DIRECTORY, "");
        }
        ObjectNode found = PlannedSource.JSON.createObjectNode();
        scala.collection.Iterator metrics = stream(spark, query).lastExecution().observedMetrics().iterator();
        while (metrics.hasNext()) {
            Tuple2 pair = (Tuple2) metrics.next();
            found.put((String) pair._1(), ((Row) pair._2()).json());
        }
        return found.toString();
    }

    private static StreamExecution stream(SparkSession spark, String query) {
        return ((StreamingQueryWrapper) spark.streams().get(query)).streamingQuery();
    }

    private static void put(ObjectNode target, String name, StreamProgress offsets, SparkDataStream source) {
        Option offset = offsets.get(source);
        if (offset.isDefined()) target.put(name, ((Offset) offset.get()).json());
    }
}
