package penstock;

import java.time.LocalDate;
import java.time.YearMonth;

/** Dates and times as ISO 8601 text, by the rules of `penstock.streams.decode.times`. */
final class JsonTimes {
    /** The result for a text that is not a date or time, or is outside the years 1 to 9999. */
    static final long NONE = Long.MIN_VALUE;

    private static final long DAY = 86400000000L;

    static final long FIRST = LocalDate.of(1, 1, 1).toEpochDay() * DAY;
    static final long LAST = LocalDate.of(10000, 1, 1).toEpochDay() * DAY - 1;

    private final byte[] text;
    private final int end;
    private int at;

    private JsonTimes(byte[] text, int at, int end) {
        this.text = text;
        this.at = at;
        this.end = end;
    }

    /** The date in the next ten bytes as days since 1970. */
    static long day(byte[] text, int at) {
        return new JsonTimes(text, at, at + 10).day();
    }

    /** A time as microseconds since 1970; without a zone it is UTC, and only with `zoned` may it have a zone. */
    static long microseconds(byte[] text, int from, int to, boolean zoned) {
        if (to - from < 10) return NONE;
        JsonTimes in = new JsonTimes(text, from, to);
        long day = in.day();
        if (day == NONE) return NONE;
        long time = day * DAY;
        if (in.at < to) {
            long clock = in.clock();
            if (clock < 0 || in.at < to && !zoned) return NONE;
            long minutes = in.zone();
            if (minutes == NONE) return NONE;
            time += clock - minutes * 60000000;
        }
        return in.at == to && FIRST <= time && time <= LAST ? time : NONE;
    }

    private long day() {
        int year = this.digits(4, 9999);
        if (year < 1 || !this.takes('-')) return NONE;
        int month = this.digits(2, 12);
        if (month < 1 || !this.takes('-')) return NONE;
        int day = this.digits(2, 31);
        if (day < 1 || day > 28 && day > YearMonth.of(year, month).lengthOfMonth()) return NONE;
        return LocalDate.of(year, month, day).toEpochDay();
    }

    /** The microseconds since midnight; negative if invalid. */
    private long clock() {
        if (!this.takes('T') && !this.takes(' ')) return -1;
        int hour = this.digits(2, 23), minute = 0, second = 0, fraction = 0;
        if (hour >= 0 && this.takes(':')) {
            minute = this.digits(2, 59);
            if (minute >= 0 && this.takes(':')) {
                second = this.digits(2, 59);
                if (second >= 0 && this.takes('.')) fraction = this.fraction();
            }
        }
        if (hour < 0 || minute < 0 || second < 0 || fraction < 0) return -1;
        return ((hour * 60 + minute) * 60 + second) * 1000000L + fraction;
    }

    /** Up to nine digits; the last three must be zeros. */
    private int fraction() {
        int value = 0, count = 0;
        for (; count < 9 && this.at < this.end; count++, this.at++) {
            int digit = this.text[this.at] - '0';
            if (digit < 0 || digit > 9) break;
            if (count < 6) value = 10 * value + digit;
            else if (digit != 0) return -1;
        }
        if (count == 0) return -1;
        for (; count < 6; count++) value *= 10;
        return value;
    }

    /** The offset of a zone from UTC in minutes. */
    private long zone() {
        if (this.at == this.end || this.takes('Z')) return 0;
        boolean behind = this.takes('-');
        if (!behind && !this.takes('+')) return NONE;
        int hours = this.digits(2, 23), minutes = 0;
        if (this.takes(':') || this.at < this.end) minutes = this.digits(2, 59);
        if (hours < 0 || minutes < 0) return NONE;
        return behind ? -(hours * 60 + minutes) : hours * 60 + minutes;
    }

    private boolean takes(int b) {
        if (this.at == this.end || this.text[this.at] != b) return false;
        this.at++;
        return true;
    }

    /** A number of `count` digits up to `most`, or -1. */
    private int digits(int count, int most) {
        if (this.end - this.at < count) return -1;
        int value = 0;
        for (int i = 0; i < count; i++) {
            int digit = this.text[this.at++] - '0';
            if (digit < 0 || digit > 9) return -1;
            value = 10 * value + digit;
        }
        return value <= most ? value : -1;
    }
}
