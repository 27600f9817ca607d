package penstock;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, with permissions that Java sets. Without its native library, which PySpark does not include,
 * Hadoop starts a `chmod` process for each file that it creates: two for each micro-batch.
 */
public final class LocalFiles extends RawLocalFileSystem {
    private static final int STICKY = 01000;

    /** Lets the file system that all local paths share create files this way, and write no `.crc` file beside each. */
    public static void install(Configuration configuration) throws IOException, ReflectiveOperationException {
        LocalFileSystem shared = FileSystem.getLocal(configuration);
        LocalFiles files = new LocalFiles();
        files.initialize(shared.getUri(), configuration);
        // A setting `fs.file.impl` would do so for new instances only, and Spark already has this one.
        Field below = FilterFileSystem.class.getDeclaredField("fs");
        below.setAccessible(true);
        below.set(shared, files);
        shared.setWriteChecksum(false);
        shared.setVerifyChecksum(false);
    }

    public void setPermission(Path path, FsPermission permission) throws IOException {
        int mode = permission.toShort();
        if ((mode & STICKY) != 0) {
            super.setPermission(path, permission);
            return;
        }
        PosixFilePermission[] all = PosixFilePermission.values(); // from the owner's reading to the others' executing
        Set granted = new HashSet();
        for (int i = 0; i < all.length; i++) {
            if ((mode & (0400 >> i)) != 0) granted.add(all[i]);
        }
        Files.setPosixFilePermissions(this.pathToFile(path).toPath(), granted);
    }
}
