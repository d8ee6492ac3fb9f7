"""From raw logs to answers, in stages that are tables: on Spark, or in this process."""
