package penstock;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/** The types that are not nested, by the rules of `penstock.streams.decode.scalars`. */
final class JsonScalars {
    private static final Pattern INTEGER = Pattern.compile("[+-]?[0-9]+");
    private static final Pattern NUMBER = Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?");
    private static final int MOST_DIGITS = 4000; // of an integer in text
    private static final double FLOAT_LIMIT = 0x1p128 - 0x1p103; // from here on a number rounds to infinity
    private static final double[] TENS = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15
    };

    private JsonScalars() {}

    static JsonKind of(DataType type, long unit) {
        if (type instanceof StringType) return new Text();
        if (type instanceof LongType || type instanceof IntegerType) return new Whole(type.defaultSize());
        if (type instanceof ShortType || type instanceof ByteType) return new Whole(type.defaultSize());
        if (type instanceof DoubleType || type instanceof FloatType) return new Floating(type instanceof FloatType);
        if (type instanceof BooleanType) return new Truth();
        if (type instanceof DecimalType) return new Exact((DecimalType) type);
        if (type instanceof DateType) return new Day();
        if (type instanceof TimestampType) return unit == 0 ? (JsonKind) new Time(true) : new Epoch(unit);
        if (type instanceof TimestampNTZType) return new Time(false);
        if (type instanceof BinaryType) return new Bytes();
        throw new IllegalArgumentException("no JSON for " + type);
    }

    /** The identity of a map key: equal for keys that count as the same. */
    static Object identity(Object key) {
        if (key instanceof byte[]) return ByteBuffer.wrap((byte[]) key);
        if (key instanceof Double && ((Double) key).doubleValue() == 0) return Double.valueOf(0);
        if (key instanceof Float && ((Float) key).floatValue() == 0) return Float.valueOf(0);
        return key;
    }

    private static String string(JsonText in) {
        return new String(in.text, in.from, in.to - in.from, StandardCharsets.UTF_8);
    }

    private static final class Text extends JsonKind {
        Object text(JsonText in) {
            return UTF8String.fromBytes(in.copy());
        }
    }

    private static final class Truth extends JsonKind {
        Object truth(boolean value) {
            return Boolean.valueOf(value);
        }

        Object key(JsonText in) {
            String name = string(in).toLowerCase(Locale.ROOT);
            return name.equals("true") ? Boolean.TRUE : name.equals("false") ? Boolean.FALSE : UNFIT;
        }
    }

    /** An integer of `size` bytes. */
    private static final class Whole extends JsonKind {
        private final int size;

        Whole(int size) {
            this.size = size;
        }

        Object number(JsonText in) {
            if (!in.whole) return UNFIT;
            int start = in.text[in.from] == '-' ? in.from + 1 : in.from;
            if (in.to - start > 18) return this.of(new BigInteger(string(in)));
            long value = 0;
            for (int i = start; i < in.to; i++) value = 10 * value + (in.text[i] - '0');
            return this.of(start == in.from ? value : -value);
        }

        Object key(JsonText in) {
            String name = string(in);
            boolean read = name.length() <= MOST_DIGITS && INTEGER.matcher(name).matches();
            return read ? this.of(new BigInteger(name)) : UNFIT;
        }

        private Object of(BigInteger value) {
            return value.bitLength() < 64 ? this.of(value.longValue()) : UNFIT;
        }

        private Object of(long value) {
            switch (this.size) {
                case 8:
                    return Long.valueOf(value);
                case 4:
                    return value == (int) value ? Integer.valueOf((int) value) : UNFIT;
                case 2:
                    return value == (short) value ? Short.valueOf((short) value) : UNFIT;
                default:
                    return value == (byte) value ? Byte.valueOf((byte) value) : UNFIT;
            }
        }
    }

    /** A timestamp that is an integer. */
    private static final class Epoch extends JsonKind {
        private final Whole whole = new Whole(8);
        private final long unit;

        Epoch(long unit) {
            this.unit = unit;
        }

        Object number(JsonText in) {
            Object number = this.whole.number(in);
            if (number == UNFIT) return UNFIT;
            long value = ((Long) number).longValue();
            boolean inside = JsonTimes.FIRST / this.unit <= value && value <= JsonTimes.LAST / this.unit;
            return inside ? Long.valueOf(value * this.unit) : UNFIT;
        }
    }

    private static final class Floating extends JsonKind {
        private final boolean single;

        Floating(boolean single) {
            this.single = single;
        }

        Object number(JsonText in) {
            double value = nearest(in);
            return this.of(in.whole && value == 0 ? 0 : value); // the integer -0 has no sign
        }

        Object text(JsonText in) {
            String name = string(in);
            boolean special = name.equals("NaN") || name.equals("Infinity") || name.equals("-Infinity");
            return special ? this.boxed(Double.parseDouble(name)) : UNFIT;
        }

        Object key(JsonText in) {
            String name = string(in);
            return NUMBER.matcher(name).matches() ? this.of(Double.parseDouble(name)) : this.text(in);
        }

        private Object of(double value) {
            double limit = this.single ? FLOAT_LIMIT : Double.POSITIVE_INFINITY;
            return Math.abs(value) < limit ? this.boxed(value) : UNFIT;
        }

        private Object boxed(double value) {
            return this.single ? (Object) Float.valueOf((float) value) : (Object) Double.valueOf(value);
        }

        /** The nearest double. A quotient of two exact doubles is the nearest, and faster than the library. */
        private static double nearest(JsonText in) {
            long digits = 0;
            int count = 0, fraction = 0, start = in.text[in.from] == '-' ? in.from + 1 : in.from;
            for (int i = start; i < in.to; i++) {
                byte b = in.text[i];
                if (b == '.') {
                    fraction = in.to - i - 1;
                } else if (++count > 15 || b > '9') {
                    return Double.parseDouble(string(in));
                } else {
                    digits = 10 * digits + (b - '0');
                }
            }
            double value = digits / TENS[fraction];
            return start == in.from ? value : -value;
        }
    }

    private static final class Exact extends JsonKind {
        private final int precision, scale;

        Exact(DecimalType type) {
            this.precision = type.precision();
            this.scale = type.scale();
        }

        Object number(JsonText in) {
            return this.of(string(in));
        }

        Object text(JsonText in) {
            String text = string(in);
            return NUMBER.matcher(text).matches() ? this.of(text) : UNFIT;
        }

        private Object of(String text) {
            BigDecimal value;
            try {
                value = new BigDecimal(text).stripTrailingZeros();
            } catch (NumberFormatException beyond) { // an exponent that only zero can have
                if (Pattern.compile("[^eE]*[1-9].*").matcher(text).matches()) return UNFIT;
                value = BigDecimal.ZERO;
            }
            long digits = (long) value.precision() - value.scale();
            boolean fits = value.scale() <= this.scale && digits <= this.precision - this.scale;
            if (!fits && value.signum() != 0) return UNFIT;
            return Decimal.apply(value.setScale(this.scale), this.precision, this.scale);
        }
    }

    private static final class Bytes extends JsonKind {
        Object text(JsonText in) {
            try {
                byte[] made = Base64.getDecoder().decode(in.copy());
                return (made.length + 2) / 3 * 4 == in.to - in.from ? (Object) made : UNFIT; // else padding is missing
            } catch (IllegalArgumentException wrong) {
                return UNFIT;
            }
        }
    }

    private static final class Day extends JsonKind {
        Object text(JsonText in) {
            long day = in.to - in.from == 10 ? JsonTimes.day(in.text, in.from) : JsonTimes.NONE;
            return day == JsonTimes.NONE ? UNFIT : Integer.valueOf((int) day);
        }
    }

    private static final class Time extends JsonKind {
        private final boolean zoned;

        Time(boolean zoned) {
            this.zoned = zoned;
        }

        Object text(JsonText in) {
            long time = JsonTimes.microseconds(in.text, in.from, in.to, this.zoned);
            return time == JsonTimes.NONE ? UNFIT : Long.valueOf(time);
        }
    }
}
