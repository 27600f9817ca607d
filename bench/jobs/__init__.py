"""The same job, written for each contender: keep valid orders over 50, add tax, write them."""
