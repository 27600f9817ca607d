package penstock;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A type of a schema: converts the JSON values that match it to Spark values, by the rules of
 * `penstock.streams.decode.values`.
 */
abstract class JsonKind {
    /** A value that doesn't match. Not an exception, because a later member with the same name may replace it. */
    static final Object UNFIT = new Object();

    private static final JsonKind IGNORED = new Ignored();

    /** The kind of a type; `unit` is the unit of integer timestamps in microseconds, 0: timestamps are ISO 8601. */
    static JsonKind of(DataType type, long unit) {
        if (type instanceof StructType) return new Members((StructType) type, unit);
        if (type instanceof ArrayType) return new Elements(of(((ArrayType) type).elementType(), unit));
        if (type instanceof MapType) {
            MapType map = (MapType) type;
            return new Entries(of(map.keyType(), 0), of(map.valueType(), unit)); // keys are text, so ISO 8601
        }
        return JsonScalars.of(type, unit);
    }

    /** The next value: null, a value that matches, or `UNFIT`. Throws `Broken` if the text is not JSON. */
    final Object read(JsonText in) {
        switch (in.peek()) {
            case '"':
                in.string();
                return this.text(in);
            case '{':
                return this.object(in);
            case '[':
                return this.array(in);
            case 't':
                in.word("true");
                return this.truth(true);
            case 'f':
                in.word("false");
                return this.truth(false);
            case 'n':
                in.word("null");
                return null;
            default:
                in.number();
                return this.number(in);
        }
    }

    /** The value of the string that was read last. */
    Object text(JsonText in) {
        return UNFIT;
    }

    /** The member name that was read last, as the key of a map. */
    Object key(JsonText in) {
        return this.text(in);
    }

    Object number(JsonText in) {
        return UNFIT;
    }

    Object truth(boolean value) {
        return UNFIT;
    }

    Object object(JsonText in) {
        for (boolean more = in.enter('}'); more; more = in.goOn('}')) {
            in.name();
            IGNORED.read(in);
        }
        return UNFIT;
    }

    Object array(JsonText in) {
        for (boolean more = in.enter(']'); more; more = in.goOn(']')) IGNORED.read(in);
        return UNFIT;
    }

    /** The kind of a member without a column. */
    private static final class Ignored extends JsonKind {}

    /** The kind of an event or a STRUCT. Members are matched by exact name. */
    static final class Members extends JsonKind {
        private final byte[][] names;
        private final JsonKind[] kinds;
        private final boolean[] required;

        Members(StructType type, long unit) {
            StructField[] fields = type.fields();
            this.names = new byte[fields.length][];
            this.kinds = new JsonKind[fields.length];
            this.required = new boolean[fields.length];
            for (int i = 0; i < fields.length; i++) {
                this.names[i] = UTF8String.fromString(fields[i].name()).getBytes();
                this.kinds[i] = of(fields[i].dataType(), unit);
                this.required[i] = !fields[i].nullable();
            }
        }

        Object object(JsonText in) {
            Object[] values = this.values(in);
            return values == null ? UNFIT : new GenericInternalRow(values);
        }

        /** The values of an object; null if it doesn't match. */
        Object[] values(JsonText in) {
            Object[] values = new Object[this.names.length];
            int next = 0;
            for (boolean more = in.enter('}'); more; more = in.goOn('}')) {
                in.name();
                int i = this.find(in, next);
                if (i < 0) {
                    IGNORED.read(in);
                } else {
                    values[i] = this.kinds[i].read(in);
                    next = i + 1;
                }
            }
            for (int i = 0; i < values.length; i++) {
                if (values[i] == UNFIT || values[i] == null && this.required[i]) return null;
            }
            return values;
        }

        /** The index of the field with the name that was read last, or -1. It is most likely `next`. */
        private int find(JsonText in, int next) {
            int length = in.to - in.from, all = this.names.length;
            for (int n = 0, i = next; n < all; n++, i++) {
                if (i >= all) i = 0;
                byte[] name = this.names[i];
                if (name.length == length && same(name, in.text, in.from)) return i;
            }
            return -1;
        }

        private static boolean same(byte[] name, byte[] text, int from) {
            for (int i = 0; i < name.length; i++) {
                if (name[i] != text[from + i]) return false;
            }
            return true;
        }
    }

    private static final class Elements extends JsonKind {
        private final JsonKind kind;

        Elements(JsonKind kind) {
            this.kind = kind;
        }

        Object array(JsonText in) {
            List values = new ArrayList();
            boolean fits = true;
            for (boolean more = in.enter(']'); more; more = in.goOn(']')) {
                Object value = this.kind.read(in);
                fits &= value != UNFIT;
                values.add(value);
            }
            return fits ? new GenericArrayData(values.toArray()) : UNFIT;
        }
    }

    private static final class Entries extends JsonKind {
        private final JsonKind key, value;

        Entries(JsonKind key, JsonKind value) {
            this.key = key;
            this.value = value;
        }

        /** If members have the same name or key, the last value counts, at the position of the first member. */
        Object object(JsonText in) {
            Map members = new LinkedHashMap(); // name: {key, value}
            for (boolean more = in.enter('}'); more; more = in.goOn('}')) {
                in.name();
                UTF8String name = UTF8String.fromBytes(in.copy());
                Object key = this.key.key(in);
                members.put(name, new Object[] {key, this.value.read(in)});
            }
            Map entries = new LinkedHashMap();
            for (java.util.Iterator all = members.values().iterator(); all.hasNext(); ) {
                Object[] member = (Object[]) all.next();
                if (member[0] == UNFIT || member[1] == UNFIT) return UNFIT;
                Object[] entry = (Object[]) entries.get(JsonScalars.identity(member[0]));
                if (entry == null) entries.put(JsonScalars.identity(member[0]), member);
                else entry[1] = member[1];
            }
            Object[] keys = new Object[entries.size()], values = new Object[entries.size()];
            int i = 0;
            for (java.util.Iterator all = entries.values().iterator(); all.hasNext(); i++) {
                Object[] entry = (Object[]) all.next();
                keys[i] = entry[0];
                values[i] = entry[1];
            }
            return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
        }
    }
}
