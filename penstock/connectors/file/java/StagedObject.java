package penstock;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.ByteArrayInputStream;
import java.nio.ByteBuffer;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BBPartHandle;
import org.apache.hadoop.fs.BBUploadHandle;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.util.functional.FutureIO;

/**
 * An object in the store that is invisible to readers until it is published.
 *
 * It is an incomplete multipart upload or, in a store without multipart uploads, an object in the staging
 * directory. The data needed to publish it is in a small separate object, because the task that stages it and the
 * driver that publishes it may be on different machines.
 */
public final class StagedObject {
  /** The name of the object with the data needed to publish. */
  public static final String PENDING = "pending";
  /** The name of the staged object in a store without multipart uploads. */
  private static final String COPY = "object";
  private static final int PART = 16 * 1024 * 1024;
  private static final int MOST_PARTS = 10000;

  private StagedObject() {}

  /** Stage a local file that will be published as the object `target`. */
  public static void stage(File file, Path directory, Path target, Configuration conf) throws IOException {
    FileSystem fs = directory.getFileSystem(conf);
    UploadHandle upload = null;
    TreeMap parts = new TreeMap();
    boolean empty = file.length() == 0; // a batch without events, which is never published
    if (!empty && hasUploads(fs, target)) {
      MultipartUploader uploader = fs.createMultipartUploader(target).build();
      try {
        upload = (UploadHandle) FutureIO.awaitFuture(uploader.startUpload(target));
        try {
          put(file, uploader, upload, target, parts);
        } catch (IOException error) {
          FutureIO.awaitFuture(uploader.abort(upload, target));
          throw error;
        }
      } finally {
        uploader.close();
      }
    } else if (!empty) {
      IOUtils.copyBytes(new FileInputStream(file), fs.create(new Path(directory, COPY), true), conf, true);
    }
    DataOutputStream out = fs.create(new Path(directory, PENDING), true);
    try {
      out.writeUTF(target.toString());
      out.writeInt(parts.size());
      if (upload != null) {
        write(out, upload.bytes());
        for (int number = 1; number <= parts.size(); number++) {
          write(out, ((PartHandle) parts.get(Integer.valueOf(number))).bytes());
        }
      }
    } finally {
      out.close();
    }
  }

  private static void put(
      File file, MultipartUploader uploader, UploadHandle upload, Path target, TreeMap parts)
      throws IOException {
    long size = Math.max(PART, file.length() / MOST_PARTS + 1);
    byte[] buffer = new byte[(int) Math.min(size, Math.max(1L, file.length()))];
    InputStream in = new FileInputStream(file);
    try {
      for (int number = 1; ; number++) {
        int length = in.readNBytes(buffer, 0, buffer.length);
        if (length == 0) {
          return;
        }
        boolean last = in.available() == 0;
        // From memory, because the client resends a part after a failure.
        InputStream part = new ByteArrayInputStream(buffer, 0, length);
        Object handle = FutureIO.awaitFuture(uploader.putPart(upload, number, last, target, part, length));
        parts.put(Integer.valueOf(number), handle);
      }
    } finally {
      in.close();
    }
  }

  /** Make the object of a staging directory visible with one request. */
  public static void publish(Path directory, Configuration conf) throws IOException {
    FileSystem fs = directory.getFileSystem(conf);
    Staged staged = new Staged(fs, directory);
    if (staged.upload != null) {
      MultipartUploader uploader = fs.createMultipartUploader(staged.target).build();
      try {
        FutureIO.awaitFuture(uploader.complete(staged.upload, staged.target, staged.parts));
      } finally {
        uploader.close();
      }
    } else {
      fs.mkdirs(staged.target.getParent());
      if (!fs.rename(new Path(directory, COPY), staged.target)) {
        throw new IOException("cannot publish " + staged.target);
      }
    }
    fs.delete(directory, true);
  }

  /** Remove the object of a staging directory, if there is one; it can no longer be published. */
  public static void discard(Path directory, Configuration conf) throws IOException {
    FileSystem fs = directory.getFileSystem(conf);
    try {
      Staged staged = new Staged(fs, directory);
      if (staged.upload != null) {
        MultipartUploader uploader = fs.createMultipartUploader(staged.target).build();
        try {
          FutureIO.awaitFuture(uploader.abort(staged.upload, staged.target));
        } finally {
          uploader.close();
        }
      }
    } catch (FileNotFoundException error) {
      // nothing was staged, or the upload no longer exists
    }
    fs.delete(directory, true);
  }

  /** Abort all incomplete uploads below a directory, so that an older worker can no longer publish them. */
  public static void fence(Path directory, Configuration conf) throws IOException {
    FileSystem fs = directory.getFileSystem(conf);
    if (hasUploads(fs, directory)) {
      MultipartUploader uploader = fs.createMultipartUploader(directory).build();
      try {
        FutureIO.awaitFuture(uploader.abortUploadsUnderPath(directory));
      } finally {
        uploader.close();
      }
    }
  }

  private static boolean hasUploads(FileSystem fs, Path path) throws IOException {
    // S3A claims to support them even if they are disabled for a store that lacks them.
    return fs.hasPathCapability(path, "fs.capability.multipart.uploader")
        && fs.getConf().getBoolean("fs.s3a.multipart.uploads.enabled", true);
  }

  private static void write(DataOutputStream out, ByteBuffer bytes) throws IOException {
    byte[] made = new byte[bytes.remaining()];
    ByteBuffer copy = (ByteBuffer) bytes.duplicate();
    copy.get(made);
    out.writeInt(made.length);
    out.write(made);
  }

  /** The content of the object with the data needed to publish. */
  private static final class Staged {
    final Path target;
    final UploadHandle upload;
    final TreeMap parts = new TreeMap();

    Staged(FileSystem fs, Path directory) throws IOException {
      DataInputStream in = fs.open(new Path(directory, PENDING));
      try {
        target = new Path(in.readUTF());
        int number = in.readInt();
        upload = number == 0 ? null : BBUploadHandle.from(read(in));
        for (int part = 1; part <= number; part++) {
          parts.put(Integer.valueOf(part), BBPartHandle.from(read(in)));
        }
      } finally {
        in.close();
      }
    }

    private static ByteBuffer read(DataInputStream in) throws IOException {
      byte[] found = new byte[in.readInt()];
      in.readFully(found);
      return ByteBuffer.wrap(found);
    }
  }
}
