package penstock;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Writes the files of checkpoints to S3, each with one request when it is closed.
 *
 * Spark's own managers write a temporary file and rename it. On S3 a rename is a copy, and whether the target exists
 * is asked before: a worker that has lost its flow could replace a file of the worker that has it now. Here the
 * store itself refuses a second file of the same name. Local checkpoints, such as that of the warm-up, are written
 * as Spark does.
 */
public final class StoredCheckpoints extends FileSystemBasedCheckpointFileManager {
  private static final String ONLY_IF_NEW = "fs.option.create.conditional.overwrite";

  public StoredCheckpoints(Path path, Configuration conf) {
    super(path, conf);
  }

  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    if (isLocal()) {
      return super.createAtomic(path, overwrite);
    }
    try {
      FSDataOutputStreamBuilder builder = fs().createFile(path).overwrite(true).recursive();
      if (!overwrite) {
        builder.must(ONLY_IF_NEW, true);
      }
      return new Upload(path, (FSDataOutputStream) builder.build());
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  /** A file that is visible once it is closed. */
  private static final class Upload extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final Path path;
    private final FSDataOutputStream out;
    private boolean ended;

    Upload(Path path, FSDataOutputStream out) {
      super(out);
      this.path = path;
      this.out = out;
    }

    public synchronized void close() throws IOException {
      if (ended) {
        return;
      }
      ended = true;
      try {
        out.close();
      } catch (IOException error) {
        // The response to a conditional request: the class is not on the class path before the jars of S3 are.
        if (error.getClass().getSimpleName().equals("RemoteFileChangedException")) {
          FileAlreadyExistsException refused = new FileAlreadyExistsException(path + " already exists");
          refused.initCause(error);
          throw refused;
        }
        throw error;
      }
    }

    public synchronized void cancel() {
      if (!ended) {
        ended = true;
        out.abort();
      }
    }
  }
}
