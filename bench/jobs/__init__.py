"""The same job, written for each contender: keep the good orders over 50, add tax, write them."""
