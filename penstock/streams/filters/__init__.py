"""Conditions on events, such as `amount > 100 AND _key = 'k1'`: a part of SQL's WHERE, without Spark."""
