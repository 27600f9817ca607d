package penstock;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.streaming.*;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets an event pass unless an event with the same keys has passed before it, at most `within` milliseconds apart.
 * Its groups are shares of the keys: one group per key would cost Spark more than the work itself.
 *
 * <p>For each key, the times of passed events are kept as long as an event that is not late may be close to one of
 * them. The first columns of a row are the ones that this class needs, in the order of `dedupe.py`.
 */
public final class Dedupe extends StatefulProcessor {
    private static final int KEY = 1, TIME = 2, OFFSET = 3, PLACE = 4;

    private final long within;
    private final Encoder keys;
    private transient MapState passed;
    private transient boolean forgets;

    public Dedupe(long within, Encoder keys) {
        this.within = within;
        this.keys = keys;
    }

    public void init(OutputMode outputMode, TimeMode timeMode) {
        this.passed = this.getHandle().getMapState("passed", this.keys, Encoders.BINARY(), TTLConfig.NONE());
        this.forgets = timeMode.equals(TimeMode.EventTime()); // for a table no state is evicted
    }

    public Iterator handleInputRows(Object share, Iterator rows, TimerValues timers) {
        List events = new ArrayList();
        while (rows.hasNext()) events.add(rows.next());
        Collections.sort(events, new AsRead());
        List passing = new ArrayList();
        for (int i = 0; i < events.size(); i++) {
            Row event = (Row) events.get(i);
            if (this.passes(event.getStruct(KEY), event.getLong(TIME), timers)) passing.add(event);
        }
        if (this.forgets && !passing.isEmpty() && !this.getHandle().listTimers().hasNext()) {
            this.getHandle().registerTimer(timers.getCurrentWatermarkInMs() + 2 * this.within + 1);
        }
        return CollectionConverters.asScala(passing.iterator());
    }

    /** Evicts the keys of a share that are too old for any event that is not late. */
    public Iterator handleExpiredTimer(Object share, TimerValues timers, ExpiredTimerInfo expired) {
        List old = new ArrayList();
        boolean more = false;
        Iterator entries = this.passed.iterator();
        while (entries.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) entries.next();
            if (this.recent(longs((byte[]) entry._2()), timers).length == 0) old.add(entry._1());
            else more = true;
        }
        for (int i = 0; i < old.size(); i++) this.passed.removeKey(old.get(i));
        if (more) this.getHandle().registerTimer(timers.getCurrentWatermarkInMs() + this.within + 1);
        return CollectionConverters.asScala(new ArrayList().iterator());
    }

    private boolean passes(Row key, long time, TimerValues timers) {
        byte[] known = (byte[]) this.passed.getValue(key);
        long[] times = known == null ? new long[0] : this.recent(longs(known), timers);
        for (int i = 0; i < times.length; i++) {
            if (Math.abs(time - times[i]) <= this.within) return false;
        }
        ByteBuffer all = ByteBuffer.allocate(8 * (times.length + 1));
        for (int i = 0; i < times.length; i++) all.putLong(times[i]);
        all.putLong(time);
        this.passed.updateValue(key, all.array());
        return true;
    }

    /** The times that an event which is not late may be close to: the watermark is more than `within` behind it. */
    private long[] recent(long[] times, TimerValues timers) {
        if (!this.forgets) return times;
        long oldest = timers.getCurrentWatermarkInMs() - this.within;
        int kept = 0;
        for (int i = 0; i < times.length; i++) {
            if (times[i] >= oldest) times[kept++] = times[i];
        }
        return java.util.Arrays.copyOf(times, kept);
    }

    private static long[] longs(byte[] bytes) {
        long[] found = new long[bytes.length / 8];
        ByteBuffer.wrap(bytes).asLongBuffer().get(found);
        return found;
    }

    private static final class AsRead implements Comparator {
        public int compare(Object one, Object other) {
            Row a = (Row) one, b = (Row) other;
            int order = Long.compare(number(a, OFFSET), number(b, OFFSET));
            if (order == 0) order = Long.compare(number(a, PLACE), number(b, PLACE));
            return order == 0 ? Long.compare(a.getLong(TIME), b.getLong(TIME)) : order;
        }

        private static long number(Row row, int column) {
            return row.isNullAt(column) ? Long.MIN_VALUE : row.getLong(column);
        }
    }
}
