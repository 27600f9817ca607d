"""The source `syslog`: a server for messages of RFC 3164 and RFC 5424."""
