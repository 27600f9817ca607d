"""Parses syslog messages in the formats RFC 5424 and RFC 3164 into events."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

COLUMNS = (
    "facility STRING, severity STRING, priority INT, time TIMESTAMP, host STRING, app STRING, procid STRING, "
    "msgid STRING, data MAP<STRING, MAP<STRING, STRING>>, message STRING, raw BINARY, malformed STRING, "
    "peer STRING"
)

FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", *(f"local{number}" for number in range(8)),
)  # fmt: skip

SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

BOM = "\ufeff"
"""The byte order mark, which an RFC 5424 text may start with."""

_PRIORITY = re.compile(r"<([0-9]{1,3})>")
_NEW = re.compile(r"1 (\S+) (\S+) (\S+) (\S+) (\S+) (.*)", re.DOTALL)
_OLD_TIME = re.compile(rf"({'|'.join(MONTHS)}) ([ 0-9]?[0-9]) ([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}) ")
_ISO_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T\S+) ")
_OLD_REST = re.compile(r"(\S+) ([^\s:\[\]]{1,64})(?:\[([^\]]*)\])?: ?(.*)", re.DOTALL)
_ELEMENT = re.compile(r'\[([^ =\]"]{1,64})((?: [^ =\]"]{1,64}="(?:[^"\\\]]|\\.)*")*)\]', re.DOTALL)
_PARAMETER = re.compile(r' ([^ =\]"]{1,64})="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\\]])')


def parse(raw: bytes, peer: str, zone: tzinfo = UTC, now: datetime | None = None) -> dict[str, Any]:
    """A message as an event. Text that can't be parsed is in `message`, with the reason in `malformed`.

    `zone` applies to times without a time zone, and `now` determines the year of times without a year.
    """
    text = raw.decode(errors="replace").rstrip("\r\n\0")
    event: dict[str, Any] = {"message": text, "raw": raw, "peer": peer}
    found = _PRIORITY.match(text)
    if found is None or int(found[1]) >= len(FACILITIES) * 8:
        return event | {"malformed": "no priority"}
    priority = int(found[1])
    event |= {
        "priority": priority, "facility": FACILITIES[priority // 8], "severity": SEVERITIES[priority % 8],
    }  # fmt: skip
    rest = text[found.end() :]
    if (new := _NEW.fullmatch(rest)) is not None:
        return event | _new(new, rest)
    return event | _old(rest, zone, now or datetime.now(UTC))


def _new(found: re.Match[str], whole: str) -> dict[str, Any]:
    """The fields of an RFC 5424 message."""
    moment, host, app, procid, msgid = (None if each == "-" else each for each in found.groups()[:5])
    event: dict[str, Any] = {"host": host, "app": app, "procid": procid, "msgid": msgid}
    if moment is not None:
        try:
            event["time"] = _iso(moment, UTC)
        except ValueError:
            return {"message": whole, "malformed": f"'{moment[:40]}' is not a valid time"}
    end, data = _data(found[6])
    if end is None:
        return {**event, "message": found[6], "malformed": "the structured data is malformed"}
    text = found[6][end:].removeprefix(" ").removeprefix(BOM)
    return {**event, "data": data, "message": text}


def _data(text: str) -> tuple[int | None, dict[str, dict[str, str]] | None]:
    """The end of the structured data, None if it is malformed; and the data: id → name → value."""
    if text == "-" or text.startswith("- "):
        return 1, None
    end, data = 0, dict[str, dict[str, str]]()
    while (element := _ELEMENT.match(text, end)) is not None:
        values = data.setdefault(element[1], {})
        for name, value in _PARAMETER.findall(element[2]):
            plain = _ESCAPED.sub(r"\1", value)
            values[name] = f"{values[name]},{plain}" if name in values else plain
        end = element.end()
    is_end = end > 0 and (end == len(text) or text[end] == " ")
    return (end, data) if is_end else (None, None)


def _old(text: str, zone: tzinfo, now: datetime) -> dict[str, Any]:
    """The fields of an RFC 3164 message, or of a common variant of it."""
    if (stamp := _OLD_TIME.match(text)) is not None:
        try:
            moment = _dated(stamp, zone, now)
        except ValueError:
            return {"message": text, "malformed": f"'{stamp[0].strip()}' is not a valid time"}
    elif (stamp := _ISO_TIME.match(text)) is not None:
        try:
            moment = _iso(stamp[1], zone)
        except ValueError:
            return {"message": text, "malformed": f"'{stamp[1][:40]}' is not a valid time"}
    else:
        return {"message": text, "malformed": "no time"}
    rest = text[stamp.end() :]
    if (found := _OLD_REST.fullmatch(rest)) is not None:
        return {"time": moment, "host": found[1], "app": found[2], "procid": found[3], "message": found[4]}
    host, _, message = rest.partition(" ")
    return {"time": moment, "host": host or None, "message": message}


def _dated(found: re.Match[str], zone: tzinfo, now: datetime) -> datetime:
    """A time without a year, in the latest year in which it is at most a day in the future."""
    month = MONTHS.index(found[1]) + 1
    day, hour, minute, second = (int(found[number]) for number in range(2, 6))
    latest = (now + timedelta(days=1)).astimezone(UTC)
    for year in range(latest.year + 1, latest.year - 8, -1):  # the last February 29 may be years ago
        try:
            moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone).astimezone(UTC)
        except ValueError:
            continue
        if moment <= latest:
            return moment
    raise ValueError("the date doesn't exist")


def _iso(text: str, zone: tzinfo) -> datetime:
    moment = datetime.fromisoformat(text)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:  # beyond the years 1 to 9999
        raise ValueError(text) from None
