package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.zip.CRC32C;
import org.apache.arrow.compression.CommonsCompressionFactory;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.compression.CompressionCodec;
import org.apache.arrow.vector.compression.CompressionUtil;
import org.apache.arrow.vector.compression.NoCompressionCodec;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Writes the events of a partition to a stream in Kafka, as frames that do not count until the driver names them in the journal.
 * The stored columns have the same buffers as those of Spark, so only the schema before them is another.
 *
 * <p>The answer for each frame is: its place in the topic or -1, its bytes there, its bytes in memory (8 bytes each), its events and
 * which of key and headers it has (4 bytes each); for a frame that Kafka did not take, its body follows.
 */
public final class KafkaAppender implements FlatMapFunction {
    private static final int HEADER = 52, CHECKED = 8, ANSWER = 32, KEY = 1, HEADERS = 2;
    private static final byte[] END = {-1, -1, -1, -1, 0, 0, 0, 0}; // of an Arrow stream
    private static final Map PRODUCERS = new HashMap();

    private final String settings;

    private KafkaAppender(String settings) {
        this.settings = settings;
    }

    /** An appender with `{topic, partition, client, compression, max_events, max_bytes, largest, columns, stored}`. */
    public static KafkaAppender of(String settings) {
        return new KafkaAppender(settings);
    }

    public Iterator call(Object batches) throws Exception {
        JsonNode told = new ObjectMapper().readTree(this.settings);
        List frames = new ArrayList();
        BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("appender", 0L, Long.MAX_VALUE);
        try {
            Schema columns = MessageSerializer.deserializeSchema(channel(decoded(told.get("columns"))));
            Iterator each = (Iterator) batches;
            while (each.hasNext()) encode((byte[]) each.next(), columns, told, allocator, frames);
        } finally {
            allocator.close();
        }
        return frames.isEmpty() ? frames.iterator() : sent(frames, told).iterator();
    }

    /** Adds the frames of a batch of Spark. */
    private static void encode(byte[] batch, Schema columns, JsonNode told, BufferAllocator allocator, List frames) throws IOException {
        VectorSchemaRoot root = VectorSchemaRoot.create(columns, allocator);
        try {
            ArrowRecordBatch read = MessageSerializer.deserializeRecordBatch(channel(batch), allocator);
            try {
                new VectorLoader(root).load(read);
            } finally {
                read.close();
            }
            int rows = root.getRowCount();
            if (rows == 0) return;
            long bytes = 0;
            for (Object vector : root.getFieldVectors()) bytes += ((FieldVector) vector).getBufferSize();
            long parts = Math.max(1, (bytes + told.get("max_bytes").asLong() - 1) / told.get("max_bytes").asLong());
            int step = (int) Math.max(1, Math.min(told.get("max_events").asLong(), (rows + parts - 1) / parts));
            for (int first = 0; first < rows; first += step) {
                int count = Math.min(step, rows - first);
                VectorSchemaRoot part = root.slice(first, count);
                try {
                    frames.add(frame(part, count, told));
                } finally {
                    if (part != root) part.close();
                }
            }
        } finally {
            root.close();
        }
    }

    /** A frame as `penstock/streams/frames.py` has it; its offset and its time are not decided yet. */
    private static Object[] frame(VectorSchemaRoot part, int count, JsonNode told) throws IOException {
        List fields = new ArrayList(), vectors = new ArrayList();
        int beside = 0;
        long raw = 0;
        for (Object each : part.getFieldVectors()) {
            FieldVector vector = (FieldVector) each;
            int bit = vector.getName().equals("_key") ? KEY : vector.getName().equals("_headers") ? HEADERS : 0;
            if (bit != 0 && vector.getNullCount() == count) continue;
            beside |= bit;
            fields.add(vector.getField());
            vectors.add(vector);
            raw += vector.getBufferSize();
        }
        VectorSchemaRoot kept = new VectorSchemaRoot(fields, vectors, count);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.write(decoded((JsonNode) told.get("stored").get(beside)));
        ArrowRecordBatch batch = new VectorUnloader(kept, true, codec(told.get("compression").asText()), true).getRecordBatch();
        try {
            MessageSerializer.serialize(new WriteChannel(Channels.newChannel(body)), batch);
        } finally {
            batch.close();
        }
        body.write(END);
        byte[] data = new byte[HEADER + body.size()];
        System.arraycopy(body.toByteArray(), 0, data, HEADER, body.size());
        ByteBuffer header = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        header.putInt(0, 0x31465350); // "PSF1"
        header.putInt(24, count);
        header.putInt(32, body.size());
        header.putInt(36, checksum(data, HEADER, data.length));
        header.putLong(40, raw);
        header.putInt(4, checksum(data, CHECKED, HEADER));
        return new Object[] {data, count, raw, beside};
    }

    /** Sends frames one after the other, and returns the answers. */
    private static List sent(List frames, JsonNode told) {
        String topic = told.get("topic").asText();
        Integer partition = Integer.valueOf(told.get("partition").asInt());
        List futures = new ArrayList(), answers = new ArrayList();
        try {
            KafkaProducer producer = producer(told);
            synchronized (producer) { // the frames of a task lie together, so that they are read together
                for (int i = 0; i < frames.size(); i++) {
                    futures.add(producer.send(new ProducerRecord(topic, partition, null, ((Object[]) frames.get(i))[0])));
                }
            }
        } catch (RuntimeException failed) {
            // The driver tries it again, for as long as the sink may take.
        }
        for (int i = 0; i < frames.size(); i++) {
            long place = i < futures.size() ? place((Future) futures.get(i)) : -1L;
            answers.add(answer((Object[]) frames.get(i), place));
        }
        return answers;
    }

    private static long place(Future sent) {
        try {
            return ((RecordMetadata) sent.get()).offset();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the task was stopped", stopped);
        } catch (Exception failed) {
            return -1L;
        }
    }

    private static byte[] answer(Object[] frame, long place) {
        byte[] data = (byte[]) frame[0];
        byte[] made = new byte[ANSWER + (place < 0 ? data.length - HEADER : 0)];
        ByteBuffer fields = ByteBuffer.wrap(made).order(ByteOrder.LITTLE_ENDIAN);
        fields.putLong(place).putLong(data.length).putLong(((Long) frame[2]).longValue());
        fields.putInt(((Integer) frame[1]).intValue()).putInt(((Integer) frame[3]).intValue());
        if (place < 0) fields.put(data, HEADER, data.length - HEADER);
        return made;
    }

    private static CompressionCodec codec(String name) {
        if (name.equals("none")) return NoCompressionCodec.INSTANCE;
        CompressionUtil.CodecType type =
            name.equals("lz4") ? CompressionUtil.CodecType.LZ4_FRAME : CompressionUtil.CodecType.ZSTD;
        return CommonsCompressionFactory.INSTANCE.createCodec(type);
    }

    private static ReadChannel channel(byte[] data) {
        return new ReadChannel(Channels.newChannel(new ByteArrayInputStream(data)));
    }

    private static byte[] decoded(JsonNode text) {
        return Base64.getDecoder().decode(text.asText());
    }

    private static int checksum(byte[] data, int from, int to) {
        CRC32C sum = new CRC32C();
        sum.update(data, from, to - from);
        return (int) sum.getValue();
    }

    /** The producer of this process for a cluster. */
    private static KafkaProducer producer(JsonNode told) {
        JsonNode client = told.get("client");
        synchronized (PRODUCERS) {
            KafkaProducer known = (KafkaProducer) PRODUCERS.get(client.toString());
            if (known != null) return known;
            Properties settings = new Properties();
            Iterator names = client.fieldNames();
            while (names.hasNext()) {
                String name = (String) names.next();
                settings.setProperty(name, client.get(name).asText());
            }
            String bytes = "org.apache.kafka.common.serialization.ByteArraySerializer";
            settings.setProperty("key.serializer", bytes);
            settings.setProperty("value.serializer", bytes);
            settings.setProperty("acks", "all");
            settings.setProperty("enable.idempotence", "true");
            settings.setProperty("max.request.size", told.get("largest").asText());
            settings.setProperty("buffer.memory", String.valueOf(2 * told.get("largest").asLong()));
            settings.setProperty("batch.size", String.valueOf(1024 * 1024));
            settings.setProperty("request.timeout.ms", "10000");
            settings.setProperty("delivery.timeout.ms", "12000");
            settings.setProperty("max.block.ms", "12000");
            // Kafka finds its classes by the loader of the thread.
            Thread thread = Thread.currentThread();
            ClassLoader before = thread.getContextClassLoader();
            thread.setContextClassLoader(KafkaProducer.class.getClassLoader());
            try {
                KafkaProducer made = new KafkaProducer(settings);
                PRODUCERS.put(client.toString(), made);
                return made;
            } finally {
                thread.setContextClassLoader(before);
            }
        }
    }
}
