"""Sources and sinks: one module or package per external system."""
