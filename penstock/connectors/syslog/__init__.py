"""The source `syslog`: a server for messages in the formats RFC 3164 and RFC 5424."""
