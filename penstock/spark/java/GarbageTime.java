package penstock;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/** The time that this JVM has spent collecting garbage. */
public final class GarbageTime {
    private GarbageTime() {}

    /** Milliseconds since the JVM began, of all collectors. */
    public static long millis() {
        long sum = 0;
        for (Object bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += Math.max(0L, ((GarbageCollectorMXBean) bean).getCollectionTime());
        }
        return sum;
    }
}
