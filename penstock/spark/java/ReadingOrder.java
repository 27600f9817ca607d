package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The order in which the events of a micro-batch were read: by offset, then by partition, then as they came.
 *
 * <p>A source may give events a place in time instead of an offset. If they have both, each task has one partition of a
 * log: then they stay as they are in it, and the partitions are merged by their times.
 *
 * <p>The tasks before a shuffle number the events, and each writes the offsets and times of its events to a file in the
 * directory that the local property `penstock.order` names. The shuffle begins when all files are there. The tasks
 * behind it read all of them, so each knows the place of its events among all, without one task for all events.
 */
public final class ReadingOrder {
    private static final String DIRECTORY = "penstock.order", SO_FAR = "penstock.latest", HALF = ".half";
    private static final long NEVER = Long.MIN_VALUE;
    private static final int SHIFT = 33;
    private static final Map TABLES = new HashMap();

    private ReadingOrder() {}

    /** A function of an event's offset, place and time: its number, by which the other functions know it. */
    public static UserDefinedFunction number(String input) {
        return functions.udf((UDF3) new Number(input), DataTypes.LongType)
                .withName("penstock_number")
                .asNondeterministic();
    }

    /** A function of an event's number: its place among all events of the micro-batch. */
    public static UserDefinedFunction place(String input) {
        return functions.udf((UDF1) new Answer(input, false), DataTypes.LongType)
                .withName("penstock_place")
                .asNondeterministic();
    }

    /** A function of an event's number: the latest time of all events before it, NULL if there is none. */
    public static UserDefinedFunction latest(String input) {
        return functions.udf((UDF1) new Answer(input, true), DataTypes.LongType)
                .withName("penstock_latest")
                .asNondeterministic();
    }

    private static String directory(TaskContext task) {
        String directory = task.getLocalProperty(DIRECTORY);
        if (directory == null) throw new IllegalStateException("the local property " + DIRECTORY + " is not set");
        return directory;
    }

    private static final class Number implements UDF3 {
        private final String input;
        private transient Page page;

        Number(String input) {
            this.input = input;
        }

        public Object call(Object offset, Object place, Object time) {
            TaskContext task = TaskContext.get();
            if (this.page == null || this.page.task != task) this.page = new Page(task, this.input);
            long order = value(place == null ? offset : place);
            if (place != null && offset != null) order = this.page.latestPlace(order);
            return Long.valueOf(this.page.add(order, value(time)));
        }

        private static long value(Object number) {
            return number == null ? NEVER : ((Long) number).longValue();
        }
    }

    /** The offsets and times of the events of a task. */
    private static final class Page implements TaskCompletionListener {
        final TaskContext task;
        private final String name;
        private long[] numbers = new long[4096];
        private int size = 0;
        private long latestPlace = NEVER;

        Page(TaskContext task, String input) {
            this.task = task;
            this.name = directory(task) + "/" + input + "-" + task.partitionId();
            task.addTaskCompletionListener((TaskCompletionListener) this);
        }

        long latestPlace(long place) {
            this.latestPlace = Math.max(this.latestPlace, place);
            return this.latestPlace;
        }

        long add(long offset, long time) {
            if (this.size == this.numbers.length) this.numbers = Arrays.copyOf(this.numbers, 2 * this.size);
            this.numbers[this.size++] = offset;
            this.numbers[this.size++] = time;
            return ((long) this.task.partitionId() << SHIFT) + this.size / 2 - 1;
        }

        public void onTaskCompletion(TaskContext task) {
            if (task.isFailed()) return;
            ByteBuffer bytes = ByteBuffer.allocate(8 * this.size);
            bytes.asLongBuffer().put(this.numbers, 0, this.size);
            String half = this.name + "." + task.taskAttemptId() + HALF;
            try {
                OutputStream out = DriverFiles.create(half);
                out.write(bytes.array());
                out.close();
                DriverFiles.move(half, this.name);
            } catch (IOException error) {
                throw new RuntimeException("the reading order was not written: " + half, error);
            }
        }
    }

    private static final class Answer implements UDF1 {
        private final String input;
        private final boolean latest;
        private transient TaskContext task;
        private transient Table table;

        Answer(String input, boolean latest) {
            this.input = input;
            this.latest = latest;
        }

        public Object call(Object number) throws IOException {
            TaskContext current = TaskContext.get();
            if (this.task != current) {
                this.table = open(current, this.input);
                this.task = current;
            }
            int event = this.table.event(((Long) number).longValue());
            if (!this.latest) return Long.valueOf(this.table.place(event));
            long latest = this.table.latest[event];
            return latest == NEVER ? null : Long.valueOf(latest);
        }
    }

    /** The table of an input, which the tasks that run at the same time share. */
    private static Table open(TaskContext task, String input) throws IOException {
        String directory = directory(task);
        String key = directory + "/" + input;
        synchronized (TABLES) {
            Table table = (Table) TABLES.get(key);
            if (table == null) {
                table = new Table(key, directory, input, soFar(task, input));
                TABLES.put(key, table);
            }
            table.users++;
            task.addTaskCompletionListener((TaskCompletionListener) table);
            return table;
        }
    }

    /** The latest time of all events in earlier micro-batches. */
    private static long soFar(TaskContext task, String input) throws IOException {
        String json = task.getLocalProperty(SO_FAR);
        JsonNode found = json == null ? null : new ObjectMapper().readTree(json).get(input);
        return found == null ? NEVER : found.asLong();
    }

    /** All events of an input in a micro-batch, partition by partition. */
    private static final class Table implements TaskCompletionListener {
        final long[] latest;
        int users = 0;
        private final String key;
        private final Map begins = new HashMap();
        private final int[] places; // null if the events lie in their order

        Table(String key, String directory, String input, long soFar) throws IOException {
            this.key = key;
            LongBuffer numbers = this.read(directory, input);
            int size = numbers.remaining() / 2;
            Integer[] order = order(numbers, size);
            this.places = order == null ? null : new int[size];
            this.latest = new long[size];
            long latest = soFar;
            for (int place = 0; place < size; place++) {
                int event = order == null ? place : order[place].intValue();
                if (order != null) this.places[event] = place;
                this.latest[event] = latest;
                latest = Math.max(latest, numbers.get(2 * event + 1));
            }
        }

        /** The offsets and times of all events. */
        private LongBuffer read(String directory, String input) throws IOException {
            Map pages = new TreeMap();
            int size = 0;
            String[] names = DriverFiles.list(directory);
            for (int i = 0; i < names.length; i++) {
                if (!names[i].startsWith(input + "-") || names[i].endsWith(HALF)) continue;
                byte[] page = DriverFiles.read(directory + "/" + names[i]);
                pages.put(Integer.valueOf(names[i].substring(input.length() + 1)), page);
                size += page.length;
            }
            ByteBuffer all = ByteBuffer.allocate(size);
            for (Iterator each = pages.entrySet().iterator(); each.hasNext(); ) {
                Map.Entry page = (Map.Entry) each.next();
                this.begins.put(page.getKey(), Integer.valueOf(all.position() / 16));
                all.put((byte[]) page.getValue());
            }
            all.flip();
            return all.asLongBuffer();
        }

        /** The events by offset; null if they are in that order already, as they are unless a step moved them. */
        private static Integer[] order(LongBuffer numbers, int size) {
            int sorted = 1;
            while (sorted < size && numbers.get(2 * sorted - 2) <= numbers.get(2 * sorted)) sorted++;
            if (sorted >= size) return null;
            Integer[] order = new Integer[size];
            for (int i = 0; i < size; i++) order[i] = Integer.valueOf(i);
            Arrays.sort(order, (Comparator) new ByOffset(numbers));
            return order;
        }

        int event(long number) {
            Object begin = this.begins.get(Integer.valueOf((int) (number >>> SHIFT)));
            if (begin == null) throw new IllegalStateException("the reading order of an event is missing: " + this.key);
            return ((Integer) begin).intValue() + (int) (number & ((1L << SHIFT) - 1));
        }

        int place(int event) {
            return this.places == null ? event : this.places[event];
        }

        public void onTaskCompletion(TaskContext task) {
            synchronized (TABLES) {
                if (--this.users == 0) TABLES.remove(this.key);
            }
        }
    }

    /** Stable: events with the same offset stay as they were read. */
    private static final class ByOffset implements Comparator {
        private final LongBuffer numbers;

        ByOffset(LongBuffer numbers) {
            this.numbers = numbers;
        }

        public int compare(Object one, Object other) {
            return Long.compare(
                    this.numbers.get(2 * ((Integer) one).intValue()), this.numbers.get(2 * ((Integer) other).intValue()));
        }
    }
}
