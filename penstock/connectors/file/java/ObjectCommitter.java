package penstock;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;

/**
 * Stages the one file of a job in an object store; `StagedObject.publish` makes it visible later.
 *
 * The task writes to its local disk, because an interrupted writer closes its file, and closing a file in an
 * object store makes it visible.
 */
public final class ObjectCommitter extends FileOutputCommitter {
  /** The setting with the directory in which the object is published. */
  public static final String TARGET = "penstock.store.target";

  private final Path directory;
  private final Configuration conf;
  private File local;

  public ObjectCommitter(Path directory, TaskAttemptContext context) throws IOException {
    super(directory, context);
    this.directory = directory;
    this.conf = context.getConfiguration();
  }

  public Path getWorkPath() {
    return new Path(local().toURI());
  }

  public void setupJob(JobContext context) {}

  public void setupTask(TaskAttemptContext context) {}

  public boolean needsTaskCommit(TaskAttemptContext context) {
    return true;
  }

  public void commitTask(TaskAttemptContext context) throws IOException {
    try {
      File[] files = local().listFiles();
      for (int i = 0; i < files.length; i++) {
        String name = files[i].getName();
        if (name.startsWith("part-")) {
          // The same name for every attempt, so that there is never a second object of the batch.
          Path target = new Path(conf.get(TARGET), "part" + name.substring(name.indexOf('.')));
          StagedObject.stage(files[i], directory, target, conf);
        }
      }
    } finally {
      abortTask(context);
    }
  }

  public void abortTask(TaskAttemptContext context) {
    if (local != null) {
      File[] files = local.listFiles();
      for (int i = 0; files != null && i < files.length; i++) {
        files[i].delete();
      }
      local.delete();
      local = null;
    }
  }

  public void commitJob(JobContext context) {}

  public void abortJob(JobContext context, JobStatus.State state) {}

  private File local() {
    try {
      if (local == null) {
        local = Files.createTempDirectory("penstock-object-").toFile();
      }
      return local;
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
