package penstock;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * Writes lines to a file of the task, in the directory that the local property `penstock.spool` names.
 *
 * <p>The file gets its name when the task has succeeded. The name is made of the number of the spool, the stage and the
 * partition, so that a task which runs again replaces the file, and one which fails leaves nothing. An unfinished file shows
 * the driver that lines did not arrive, though Spark may have the rows. If the property is empty, nothing is written: that
 * is for tasks that compute again, for a sink, what an executor has lost.
 */
public final class Spool implements UDF1 {
    private static final String NAME = "penstock_spool";
    static final String DIRECTORY = "penstock.spool";
    private static final ConcurrentHashMap OPEN = new ConcurrentHashMap();

    private final int number;

    private Spool(int number) {
        this.number = number;
    }

    /** A function of one string, which Spark must neither repeat nor leave out. */
    public static UserDefinedFunction function(int number) {
        return functions.udf((UDF1) new Spool(number), DataTypes.BooleanType)
                .withName(NAME)
                .asNondeterministic();
    }

    /** Always false: a row that was written is no event any more. */
    public Object call(Object line) throws IOException {
        write(this.number, TaskContext.get(), (String) line);
        return Boolean.FALSE;
    }

    /** Writes a line that is no row, if the computation has a directory. */
    static void note(int number, String line) throws IOException {
        TaskContext task = TaskContext.get();
        if (task != null && task.getLocalProperty(DIRECTORY) != null) write(number, task, line);
    }

    private static void write(int number, TaskContext task, String line) throws IOException {
        String directory = task.getLocalProperty(DIRECTORY);
        if (directory == null) throw new IllegalStateException("the local property " + DIRECTORY + " is not set");
        if (directory.isEmpty()) return;
        String key = number + "/" + task.taskAttemptId();
        Page page = (Page) OPEN.get(key);
        if (page == null) {
            page = new Page(key, directory, task, number);
            OPEN.put(key, page);
            task.addTaskFailureListener((TaskFailureListener) page);
            task.addTaskCompletionListener((TaskCompletionListener) page);
        }
        page.write(line);
    }

    private static final class Page implements TaskFailureListener, TaskCompletionListener {
        private final String key;
        private final String half, whole;
        private final OutputStream out;
        private boolean failed = false;

        Page(String key, String directory, TaskContext task, int number) throws IOException {
            String name = String.format("%04d-%06d-%06d", new Object[] {
                Integer.valueOf(number), Integer.valueOf(task.stageId()), Integer.valueOf(task.partitionId())
            });
            this.key = key;
            this.whole = directory + "/" + name;
            this.half = this.whole + "." + task.taskAttemptId() + ".half";
            this.out = DriverFiles.create(this.half);
        }

        void write(String line) throws IOException {
            this.out.write(line.getBytes(StandardCharsets.UTF_8));
            this.out.write('\n');
        }

        public void onTaskFailure(TaskContext task, Throwable error) {
            this.failed = true;
        }

        public void onTaskCompletion(TaskContext task) {
            OPEN.remove(this.key);
            try {
                if (this.failed) {
                    DriverFiles.abandon(this.out, this.half);
                } else {
                    this.out.close();
                    DriverFiles.move(this.half, this.whole);
                }
            } catch (IOException error) {
                throw new RuntimeException("a page of the spool was not written: " + this.whole, error);
            }
        }
    }
}
