package org.apache.hadoop.hbase.client;

import java.io.Closeable;
import java.util.ArrayList;
import java.util.List;

/** A stub with the one field of HBase's that counts here. */
public final class HTable implements Table {
    private final List<String> closed = new ArrayList<>();
    final Closeable connection = () -> closed.add("connection");

    @Override
    public void close() {
        closed.add("table");
    }

    /** What has been closed, in its order. */
    public String closed() {
        return String.join(" ", closed);
    }
}
