package penstock;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper;
import org.apache.spark.sql.connector.read.streaming.Offset;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/** What a query knows of its current micro-batch. Each answer is one JSON text, since each call from Python takes time. */
public final class MicroBatches {
    private MicroBatches() {}

    /** The offsets of the first source between which the batch lies, as texts, and its watermark in milliseconds. */
    public static String describe(SparkSession spark, String query) {
        StreamExecution stream = stream(spark, query);
        SparkDataStream source = (SparkDataStream) stream.sources().head();
        ObjectNode found = PlannedSource.JSON.createObjectNode();
        put(found, "committed", stream.committedOffsets(), source);
        put(found, "available", stream.availableOffsets(), source);
        found.put("watermark", stream.lastExecution().offsetSeqMetadata().batchWatermarkMs());
        return found.toString();
    }

    /** Resets the observed metrics of the batch. */
    public static void reset(SparkSession spark, String query) {
        stream(spark, query).lastExecution().executedPlan().resetMetrics();
    }

    /** The observed metrics of the computed batch: by name, each row as a JSON text. */
    public static String metrics(SparkSession spark, String query) {
        ObjectNode found = PlannedSource.JSON.createObjectNode();
        Iterator metrics = stream(spark, query).lastExecution().observedMetrics().iterator();
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
