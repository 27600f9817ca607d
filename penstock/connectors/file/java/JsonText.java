package penstock;

import java.util.Arrays;

/**
 * A strict reader of JSON (RFC 8259) over the bytes of one text. Like the decoder of streams, it rejects numbers with
 * more than 4300 digits, values nested more than 200 levels deep, and unpaired surrogates. It doesn't detect bytes that
 * are not UTF-8: `ascii` returns whether there can't be any.
 */
final class JsonText {
    /** The text is not JSON. Has no stack trace, because a file may have many such lines. */
    static final class Broken extends RuntimeException {
        Broken() {
            super("not JSON", null, false, false);
        }
    }

    private static final Broken BROKEN = new Broken();
    private static final int DEEPEST = 200, MOST_DIGITS = 4300;

    byte[] bytes;
    int at;
    /** The location of the string or number that was read last: in `text` from `from` to `to`. */
    byte[] text;
    int from, to;
    /** Whether the number that was read last has neither a fraction nor an exponent. */
    boolean whole;

    private int end, depth, seen;
    private byte[] unescaped = new byte[0];

    void open(byte[] bytes, int start, int end) {
        this.bytes = bytes;
        this.at = start;
        this.end = end;
        this.depth = this.seen = 0;
    }

    /** Whether all strings that were read are ASCII. */
    boolean ascii() {
        return this.seen >= 0;
    }

    /** The first byte of the next token, or 0 at the end. */
    int peek() {
        while (this.at < this.end) {
            byte b = this.bytes[this.at];
            if (b != ' ' && b != '\t' && b != '\n' && b != '\r') return b;
            this.at++;
        }
        return 0;
    }

    /** Rejects any text after the value. */
    void close() {
        this.peek();
        if (this.at < this.end) throw BROKEN;
    }

    /** Enters an array or object; returns whether it has an element. */
    boolean enter(int bracket) {
        this.at++;
        if (this.peek() == bracket) {
            this.at++;
            return false;
        }
        if (++this.depth > DEEPEST) throw BROKEN;
        return true;
    }

    /** Skips to the next element of an array or object; returns whether there is one. */
    boolean goOn(int bracket) {
        int b = this.peek();
        if (b != ',' && b != bracket) throw BROKEN;
        this.at++;
        if (b == ',') return true;
        this.depth--;
        return false;
    }

    /** Reads the name of a member, and the colon. */
    void name() {
        if (this.peek() != '"') throw BROKEN;
        this.string();
        if (this.peek() != ':') throw BROKEN;
        this.at++;
    }

    void word(String word) {
        for (int i = 0; i < word.length(); i++, this.at++) {
            if (this.at == this.end || this.bytes[this.at] != word.charAt(i)) throw BROKEN;
        }
    }

    void number() {
        int i = this.at;
        if (i < this.end && this.bytes[i] == '-') i++;
        int first = i;
        i = this.digits(i);
        if (i - first > MOST_DIGITS || i - first > 1 && this.bytes[first] == '0') throw BROKEN;
        this.whole = true;
        if (i < this.end && this.bytes[i] == '.') {
            this.whole = false;
            i = this.digits(i + 1);
        }
        if (i < this.end && (this.bytes[i] == 'e' || this.bytes[i] == 'E')) {
            this.whole = false;
            i++;
            if (i < this.end && (this.bytes[i] == '+' || this.bytes[i] == '-')) i++;
            i = this.digits(i);
        }
        this.text = this.bytes;
        this.from = this.at;
        this.to = this.at = i;
    }

    private int digits(int i) {
        int start = i;
        while (i < this.end && this.bytes[i] >= '0' && this.bytes[i] <= '9') i++;
        if (i == start) throw BROKEN;
        return i;
    }

    void string() {
        byte[] all = this.bytes;
        int start = this.at + 1, stop = this.end, or = this.seen;
        for (int i = start; i < stop; i++) {
            byte b = all[i];
            or |= b;
            if (b == '"') {
                this.seen = or;
                this.text = all;
                this.from = start;
                this.to = i;
                this.at = i + 1;
                return;
            }
            if (b == '\\') {
                this.seen = or;
                this.escaped(start, i);
                return;
            }
            if (b >= 0 && b < ' ') break;
        }
        throw BROKEN;
    }

    /** Reads the string at `start`, which has no escapes before `backslash`. */
    private void escaped(int start, int backslash) {
        if (this.unescaped.length < this.end - start) this.unescaped = new byte[this.end - start]; // never longer
        int n = backslash - start;
        System.arraycopy(this.bytes, start, this.unescaped, 0, n);
        this.at = backslash;
        while (this.at < this.end) {
            byte b = this.bytes[this.at++];
            this.seen |= b;
            if (b == '"') {
                this.text = this.unescaped;
                this.from = 0;
                this.to = n;
                return;
            }
            if (b >= 0 && b < ' ') break;
            if (b != '\\') this.unescaped[n++] = b;
            else n = this.escape(n);
        }
        throw BROKEN;
    }

    private int escape(int n) {
        if (this.at == this.end) throw BROKEN;
        int b = this.bytes[this.at++];
        if (b == 'u') return this.put(this.character(), n);
        int i = "\"\\/bfnrt".indexOf(b);
        if (i < 0) throw BROKEN;
        this.unescaped[n] = (byte) "\"\\/\b\f\n\r\t".charAt(i);
        return n + 1;
    }

    /** The character of an escape, or of the two escapes of a surrogate pair. */
    private int character() {
        int unit = this.unit();
        if (unit < 0xD800 || unit > 0xDFFF) return unit;
        this.word("\\u");
        int low = this.unit();
        if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF) throw BROKEN;
        return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }

    private int unit() {
        if (this.end - this.at < 4) throw BROKEN;
        int unit = 0;
        for (int i = 0; i < 4; i++) {
            int b = this.bytes[this.at++];
            int digit = b < 0 ? -1 : Character.digit((char) b, 16);
            if (digit < 0) throw BROKEN;
            unit = unit << 4 | digit;
        }
        return unit;
    }

    private int put(int c, int n) {
        byte[] to = this.unescaped;
        if (c < 0x80) {
            to[n++] = (byte) c;
            return n;
        }
        if (c < 0x800) {
            to[n++] = (byte) (0xC0 | c >> 6);
        } else {
            if (c < 0x10000) {
                to[n++] = (byte) (0xE0 | c >> 12);
            } else {
                to[n++] = (byte) (0xF0 | c >> 18);
                to[n++] = (byte) (0x80 | c >> 12 & 0x3F);
            }
            to[n++] = (byte) (0x80 | c >> 6 & 0x3F);
        }
        to[n++] = (byte) (0x80 | c & 0x3F);
        return n;
    }

    /** A copy of the string or number that was read last. */
    byte[] copy() {
        return Arrays.copyOfRange(this.text, this.from, this.to);
    }
}
