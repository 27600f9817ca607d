package penstock;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Decodes JSON objects of a schema. Call `open` with a text, then `values`, or `corrupt` if it has no values. */
final class JsonEvent {
    private final JsonKind.Members members;
    private final JsonText text = new JsonText();
    private byte[] bytes;
    private int first, start, end;

    JsonEvent(StructType columns, long unit) {
        this.members = new JsonKind.Members(columns, unit);
    }

    /** Sets the first `end` bytes as the next text; false if it is blank. */
    boolean open(byte[] bytes, int end) {
        this.text.open(bytes, 0, end);
        this.bytes = bytes;
        this.first = this.text.peek();
        this.start = this.text.at;
        this.end = end;
        return this.start < end;
    }

    /** The values of the columns; null if the text doesn't match the schema. */
    Object[] values() {
        if (this.first != '{') return null;
        try {
            Object[] found = this.members.values(this.text);
            this.text.close();
            int length = this.end - this.start;
            boolean valid = this.text.ascii() || UTF8String.fromBytes(this.bytes, this.start, length).isValid();
            return valid ? found : null;
        } catch (JsonText.Broken broken) {
            return null;
        }
    }

    /** The text, which is not blank, and the reason if it is not UTF-8: other reasons can be found from the text. */
    GenericInternalRow corrupt() {
        int stop = this.end;
        while (isBlank(this.bytes[stop - 1])) stop--;
        UTF8String text = UTF8String.fromBytes(Arrays.copyOfRange(this.bytes, this.start, stop));
        CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
        ByteBuffer left = ByteBuffer.wrap(text.getBytes());
        boolean valid = !decoder.decode(left, CharBuffer.allocate(stop - this.start), true).isError();
        String reason = valid ? null : "byte " + (left.position() + 1) + " is not UTF-8";
        return row(valid ? "malformed" : "invalid_utf8", reason, text.makeValid());
    }

    /** The row for a text that is not an event. */
    static GenericInternalRow row(String code, String reason, UTF8String text) {
        return new GenericInternalRow(new Object[] {UTF8String.fromString(code), UTF8String.fromString(reason), text});
    }

    private static boolean isBlank(byte b) {
        return b == ' ' || b == '\t' || b == '\r' || b == '\n';
    }
}
