"""The source `mysql_cdc`: changes of tables in MySQL and MariaDB, from the binary log."""
