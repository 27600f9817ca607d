package penstock;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;

/**
 * Files of the driver, as tasks see them. In the driver's own process they are opened as files. An executor may be on another
 * machine: it asks the server of `penstock/spark/file_server.py` for them.
 *
 * <p>All requests can be repeated without a second effect, and are, if the connection fails.
 */
final class DriverFiles {
    private static final String PORT = "spark.penstock.files.port", SECRET = "spark.penstock.files.secret";
    private static final int BUFFER = 256 * 1024; // bytes that are read or written at a time, here
    private static final int PART = 4 * 1024 * 1024; // and over the network
    private static final int ATTEMPTS = 6, PAUSE_MS = 200, CONNECT_MS = 10000, ANSWER_MS = 60000;

    private DriverFiles() {}

    /** The bytes of a file from a position on, up to `end`; FileNotFoundException if there is no such file. */
    static InputStream open(String path, long at, long end) throws IOException {
        if (isElsewhere()) return new BufferedInputStream(new Part(path, at, end), BUFFER);
        FileInputStream stream = new FileInputStream(path);
        stream.getChannel().position(at);
        return new BufferedInputStream(stream, BUFFER);
    }

    /** All bytes of a file. */
    static byte[] read(String path) throws IOException {
        InputStream found = open(path, 0, Long.MAX_VALUE);
        try {
            return found.readAllBytes();
        } finally {
            found.close();
        }
    }

    /** The names in a directory; none if there is no such directory. */
    static String[] list(String directory) throws IOException {
        if (isElsewhere()) {
            String names = new String(ask("GET", "/names", directory, "", null), StandardCharsets.UTF_8);
            return names.isEmpty() ? new String[0] : names.split("\n");
        }
        String[] names = Paths.get(directory, new String[0]).toFile().list();
        return names == null ? new String[0] : names;
    }

    /** A new file, which is there at once. Its directory must exist: after the end of a computation it does not any more. */
    static OutputStream create(String path) throws IOException {
        if (isElsewhere()) return new Upload(path);
        return new BufferedOutputStream(new FileOutputStream(path), BUFFER);
    }

    /** Removes a file that was not finished, if that is possible now. */
    static void abandon(OutputStream file, String path) {
        try {
            if (file instanceof Upload) {
                askOnce("DELETE", "/", path, "", null);
            } else {
                file.close();
                Files.deleteIfExists(Paths.get(path, new String[0]));
            }
        } catch (IOException error) {
            // the file stays until the computation ends
        }
    }

    /** Gives a file another name, at which it replaces any other. */
    static void move(String from, String to) throws IOException {
        if (isElsewhere()) {
            ask("POST", "/move", from, "&to=" + encoded(to), new byte[0]);
        } else {
            CopyOption[] options = {StandardCopyOption.REPLACE_EXISTING};
            Files.move(Paths.get(from, new String[0]), Paths.get(to, new String[0]), options);
        }
    }

    private static boolean isElsewhere() {
        SparkEnv env = SparkEnv.get();
        return env != null && !env.executorId().equals("driver") && env.conf().contains(PORT);
    }

    /** Asks the server, again if the connection fails; null if the file is not there. */
    private static byte[] ask(String method, String route, String path, String more, byte[] body) throws IOException {
        for (int attempt = 1; ; attempt++) {
            try {
                return askOnce(method, route, path, more, body);
            } catch (FileNotFoundException gone) {
                throw gone;
            } catch (IOException error) {
                if (attempt == ATTEMPTS) throw new IOException("the driver does not serve " + path, error);
                try {
                    Thread.sleep((long) PAUSE_MS << attempt);
                } catch (InterruptedException killed) {
                    throw new IOException("the task was killed", killed);
                }
            }
        }
    }

    private static byte[] askOnce(String method, String route, String path, String more, byte[] body) throws IOException {
        SparkConf conf = SparkEnv.get().conf();
        String host = conf.get("spark.driver.host");
        if (host.indexOf(':') >= 0 && !host.startsWith("[")) host = "[" + host + "]"; // IPv6
        URL url = new URL("http://" + host + ":" + conf.get(PORT) + route + "?path=" + encoded(path) + more);
        HttpURLConnection connection = (HttpURLConnection) url.openConnection(java.net.Proxy.NO_PROXY);
        connection.setRequestMethod(method);
        connection.setConnectTimeout(CONNECT_MS);
        connection.setReadTimeout(ANSWER_MS);
        connection.setRequestProperty("Authorization", "Bearer " + conf.get(SECRET));
        if (body != null) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(body.length);
            OutputStream out = connection.getOutputStream();
            out.write(body);
            out.close();
        }
        int status = connection.getResponseCode();
        if (status == 404) throw new FileNotFoundException(path);
        if (status != 200) throw new IOException("the server of the driver answers " + status + " for " + path);
        InputStream answer = connection.getInputStream();
        try {
            byte[] found = answer.readAllBytes();
            // Java takes a connection that breaks off for the end of the answer.
            if (found.length != connection.getContentLength()) throw new IOException("the connection broke off");
            return found;
        } finally {
            answer.close();
        }
    }

    private static String encoded(String text) throws IOException {
        return URLEncoder.encode(text, "UTF-8");
    }

    /** A part of a file of the driver. */
    private static final class Part extends InputStream {
        private final String path;
        private final long end;
        private long next;
        private InputStream loaded;
        private boolean finished = false;

        Part(String path, long at, long end) throws IOException {
            this.path = path;
            this.next = at;
            this.end = end;
            this.load(); // a file that is not there is noticed here, as with a file of this machine
        }

        private void load() throws IOException {
            long size = Math.min(PART, this.end - this.next);
            byte[] found = size <= 0 ? new byte[0] : ask("GET", "/", this.path, "&at=" + this.next + "&size=" + size, null);
            this.next += found.length;
            this.finished = found.length == 0;
            this.loaded = new ByteArrayInputStream(found);
        }

        public int read() throws IOException {
            byte[] one = new byte[1];
            return this.read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
        }

        public int read(byte[] target, int from, int size) throws IOException {
            if (size == 0) return 0;
            int found = this.loaded.read(target, from, size);
            while (found < 0 && !this.finished) {
                this.load();
                found = this.loaded.read(target, from, size);
            }
            return found;
        }
    }

    /** A file of the driver that is written. */
    private static final class Upload extends OutputStream {
        private final String path;
        private final ByteArrayOutputStream waiting = new ByteArrayOutputStream();
        private long next = 0;

        Upload(String path) throws IOException {
            this.path = path;
            this.send();
        }

        public void write(int one) throws IOException {
            this.write(new byte[] {(byte) one}, 0, 1);
        }

        public void write(byte[] source, int from, int size) throws IOException {
            for (int left = size; left > 0; ) {
                int taken = Math.min(left, PART - this.waiting.size());
                this.waiting.write(source, from + size - left, taken);
                left -= taken;
                if (this.waiting.size() == PART) this.send();
            }
        }

        public void close() throws IOException {
            if (this.waiting.size() > 0) this.send();
        }

        private void send() throws IOException {
            ask("PUT", "/", this.path, "&at=" + this.next, this.waiting.toByteArray());
            this.next += this.waiting.size();
            this.waiting.reset();
        }
    }
}
