package org.apache.hadoop.hbase.client;

import java.io.Closeable;

/** A stub. */
public interface Table extends Closeable {}
