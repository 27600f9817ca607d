package penstock;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.HadoopFileLinesReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat;
import org.apache.spark.sql.types.*;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Files of JSON lines as a Spark format, decoded by the rules of streams. `lines.py` sets the options: `columns` is
 * the schema with its NOT NULL, which Spark drops; `unit` is the unit of integer TIMESTAMPs in microseconds, or 0.
 * The column `$corrupt` has a line that doesn't match the schema; the other columns are null then.
 */
public final class JsonLines extends JsonFileFormat {
    public Function1 buildReader(
            SparkSession spark, StructType data, StructType directories, StructType required, Seq filters, Map options,
            Configuration configuration) {
        StructType columns = without((StructType) DataType.fromJson(option(options, "columns")), directories);
        int[] places = new int[required.length()];
        for (int i = 0; i < places.length; i++) {
            String name = required.fields()[i].name();
            places[i] = Arrays.asList(columns.fieldNames()).indexOf(name); // -1: the column of the line
        }
        Broadcast hadoop = SerializableConfiguration.broadcast(spark.sparkContext(), configuration);
        return new Reader(columns, places, Long.parseLong(option(options, "unit")), option(options, "lineSep"), hadoop);
    }

    public String toString() {
        return "Penstock JSON";
    }

    public boolean equals(Object other) {
        return other instanceof JsonLines;
    }

    public int hashCode() {
        return JsonLines.class.hashCode();
    }

    private static String option(Map options, String name) {
        Option found = options.get(name);
        return found.isDefined() ? (String) found.get() : null;
    }

    /** The columns that are not partition directories. */
    private static StructType without(StructType columns, StructType directories) {
        StructType kept = new StructType();
        for (int i = 0; i < columns.length(); i++) {
            StructField field = columns.fields()[i];
            boolean named = false;
            for (int j = 0; j < directories.length(); j++) {
                named |= directories.fields()[j].name().equalsIgnoreCase(field.name());
            }
            if (!named) kept = kept.add(field);
        }
        return kept;
    }

    /** Opens files. */
    public static final class Reader extends AbstractFunction1 implements java.io.Serializable {
        private final StructType columns;
        private final int[] places;
        private final long unit;
        private final String separator;
        private final Broadcast hadoop;

        Reader(StructType columns, int[] places, long unit, String separator, Broadcast hadoop) {
            this.columns = columns;
            this.places = places;
            this.unit = unit;
            this.separator = separator;
            this.hadoop = hadoop;
        }

        public Object apply(Object file) {
            byte[] end = this.separator == null ? null : this.separator.getBytes(StandardCharsets.UTF_8);
            Configuration configuration = ((SerializableConfiguration) this.hadoop.value()).value();
            HadoopFileLinesReader lines =
                    new HadoopFileLinesReader((PartitionedFile) file, Option.apply(end), configuration);
            if (TaskContext.get() != null) TaskContext.get().addTaskCompletionListener(new Closing(lines));
            return new Rows(lines, new JsonEvent(this.columns, this.unit), this.places);
        }
    }

    private static final class Closing implements TaskCompletionListener {
        private final HadoopFileLinesReader lines;

        Closing(HadoopFileLinesReader lines) {
            this.lines = lines;
        }

        public void onTaskCompletion(TaskContext context) {
            this.lines.close();
        }
    }

    /** The rows of a file. Each row is overwritten by the next. */
    private static final class Rows extends AbstractIterator {
        private final HadoopFileLinesReader lines;
        private final JsonEvent event;
        private final int[] places;
        private final Object[] values;
        private final GenericInternalRow row;
        private boolean ready;

        Rows(HadoopFileLinesReader lines, JsonEvent event, int[] places) {
            this.lines = lines;
            this.event = event;
            this.places = places;
            this.values = new Object[places.length];
            this.row = new GenericInternalRow(this.values);
        }

        public boolean hasNext() {
            while (!this.ready && this.lines.hasNext()) {
                Text line = this.lines.next();
                this.ready = this.decode(line.getBytes(), line.getLength());
            }
            return this.ready;
        }

        public Object next() {
            if (!this.hasNext()) throw new java.util.NoSuchElementException();
            this.ready = false;
            return this.row;
        }

        /** Fills the row; false if the line is blank. */
        private boolean decode(byte[] line, int end) {
            if (!this.event.open(line, end)) return false;
            Object[] found = this.event.values();
            for (int i = 0; i < this.places.length; i++) {
                int place = this.places[i];
                this.values[i] = found != null && place >= 0 ? found[place] : null;
                if (found == null && place < 0) this.values[i] = this.event.corrupt();
            }
            return true;
        }
    }
}
