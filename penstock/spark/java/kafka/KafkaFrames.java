package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.zip.CRC32C;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * The frames of a stream in Kafka as they would lie in a file: `{topic, partition, client, records: [[position, base, time], …]}`.
 * A frame in Kafka does not know its offset and its time, since it is written before they are decided: they are put into
 * its header here. The stream of bytes ends where a record is gone.
 */
public final class KafkaFrames extends InputStream {
    private static final int HEADER = 52, CHECKED = 8, BASE = 8, TIME = 16;
    private static final long ANSWER_MS = 30000;
    private static final int SKIPPED = 16; // records that are passed over rather than sought
    private static final int IDLE = 4; // consumers that are kept of each cluster: to connect takes longer than to read
    private static final Map POOL = new HashMap();

    private final String cluster;
    private final TopicPartition partition;
    private final JsonNode wanted;
    private KafkaConsumer consumer;
    private Iterator fetched = Collections.emptyIterator();
    private int number = 0;
    private long reached = -1; // the position after the last record
    private byte[] data = new byte[0];
    private int at = 0;

    public KafkaFrames(JsonNode piece) {
        this.cluster = piece.get("client").toString();
        this.partition = new TopicPartition(piece.get("topic").asText(), piece.get("partition").asInt());
        this.wanted = piece.get("records");
        this.consumer = take(this.cluster, piece.get("client"));
        this.consumer.assign(Collections.singletonList(this.partition));
        this.seek();
    }

    private void seek() {
        if (this.number < this.wanted.size()) this.consumer.seek(this.partition, this.position());
    }

    private long position() {
        return field((JsonNode) this.wanted.get(this.number), 0);
    }

    public int read() throws IOException {
        if (!this.fill()) return -1;
        return this.data[this.at++] & 0xff;
    }

    public int read(byte[] target, int from, int length) throws IOException {
        if (length == 0) return 0;
        if (!this.fill()) return -1;
        int count = Math.min(length, this.data.length - this.at);
        System.arraycopy(this.data, this.at, target, from, count);
        this.at += count;
        return count;
    }

    public void close() {
        if (this.consumer == null) return;
        give(this.cluster, this.consumer);
        this.consumer = null;
    }

    /** Whether there are bytes, of the next record if need be. */
    private boolean fill() throws IOException {
        if (this.at < this.data.length) return true;
        if (this.number >= this.wanted.size()) return false;
        byte[] found = this.record();
        if (found == null) return false;
        JsonNode told = (JsonNode) this.wanted.get(this.number++);
        if (found.length >= HEADER) {
            ByteBuffer fields = ByteBuffer.wrap(found).order(ByteOrder.LITTLE_ENDIAN);
            boolean sound = fields.getInt(4) == checksum(found);
            fields.putLong(BASE, field(told, 1));
            fields.putLong(TIME, field(told, 2));
            if (sound) fields.putInt(4, checksum(found)); // else the reader is to find the damage
        }
        this.data = found;
        this.at = 0;
        return found.length > 0;
    }

    /** The record at the wanted position; null if it is gone. */
    private byte[] record() throws IOException {
        long position = this.position(), until = System.currentTimeMillis() + ANSWER_MS;
        if (this.reached >= 0 && (position < this.reached || position > this.reached + SKIPPED)) {
            this.fetched = Collections.emptyIterator(); // tasks that write at the same time leave their frames in any order
            this.seek();
        }
        while (true) {
            while (this.fetched.hasNext()) {
                ConsumerRecord record = (ConsumerRecord) this.fetched.next();
                this.reached = record.offset() + 1;
                if (record.offset() == position) return (byte[]) record.value();
                if (record.offset() > position) return null;
            }
            if (System.currentTimeMillis() > until) throw new IOException("Kafka does not answer");
            try {
                this.fetched = this.consumer.poll(Duration.ofMillis(500L)).records(this.partition).iterator();
            } catch (OffsetOutOfRangeException gone) {
                return null;
            }
        }
    }

    private static long field(JsonNode fields, int at) {
        return ((JsonNode) fields.get(at)).asLong();
    }

    private static int checksum(byte[] frame) {
        CRC32C sum = new CRC32C();
        sum.update(frame, CHECKED, HEADER - CHECKED);
        return (int) sum.getValue();
    }

    private static KafkaConsumer take(String cluster, JsonNode client) {
        synchronized (POOL) {
            ArrayDeque idle = (ArrayDeque) POOL.get(cluster);
            if (idle != null && !idle.isEmpty()) return (KafkaConsumer) idle.pop();
        }
        Properties settings = new Properties();
        Iterator names = client.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            settings.setProperty(name, client.get(name).asText());
        }
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.setProperty("key.deserializer", bytes);
        settings.setProperty("value.deserializer", bytes);
        settings.setProperty("enable.auto.commit", "false");
        settings.setProperty("auto.offset.reset", "none");
        settings.setProperty("max.partition.fetch.bytes", String.valueOf(8 * 1024 * 1024));
        // Kafka finds its classes by the loader of the thread.
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(KafkaConsumer.class.getClassLoader());
        try {
            return new KafkaConsumer(settings);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static void give(String cluster, KafkaConsumer consumer) {
        consumer.unsubscribe();
        synchronized (POOL) {
            ArrayDeque idle = (ArrayDeque) POOL.get(cluster);
            if (idle == null) POOL.put(cluster, idle = new ArrayDeque());
            if (idle.size() < IDLE) {
                idle.push(consumer);
                return;
            }
        }
        consumer.close(Duration.ofSeconds(1L));
    }
}
