package penstock;

import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * A file system that connectors with the same settings share.
 *
 * Hadoop's own cache of file systems is keyed by address only, so all flows of a worker that read or write the
 * same bucket would use the credentials of the first flow.
 */
public final class SharedFileSystem extends FilterFileSystem {
  /** The setting with the class of the underlying file system. */
  public static final String CLASS = "penstock.store.class";
  /** The setting with a digest of all settings of the store. */
  public static final String SETTINGS = "penstock.store.settings";

  private static final Map SHARED = new HashMap();

  public void initialize(URI name, Configuration conf) throws IOException {
    String key = name.getScheme() + "://" + name.getAuthority() + " " + conf.get(SETTINGS);
    synchronized (SHARED) {
      this.fs = (FileSystem) SHARED.get(key);
      if (this.fs == null) {
        Class made = conf.getClass(CLASS, null);
        if (made == null) {
          throw new IOException("No FileSystem for scheme \"" + name.getScheme() + "\"");
        }
        this.fs = (FileSystem) ReflectionUtils.newInstance(made, conf);
        this.fs.initialize(name, conf);
        SHARED.put(key, this.fs);
      }
    }
    super.initialize(name, conf);
  }

  public String getScheme() {
    return fs.getScheme();
  }

  public RemoteIterator listFiles(Path path, boolean recursive) throws IOException {
    return fs.listFiles(path, recursive); // an object store lists a tree with one request
  }

  public boolean hasPathCapability(Path path, String capability) throws IOException {
    return fs.hasPathCapability(path, capability); // the inherited method denies multipart uploads
  }

  public MultipartUploaderBuilder createMultipartUploader(Path path) throws IOException {
    return fs.createMultipartUploader(path);
  }

  /** Does nothing: the file system is shared. */
  public void close() {}
}
