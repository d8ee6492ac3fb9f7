package nstorm.reviewed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import nstorm.memory.Reviewed.How;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.storm.hdfs.bolt.AbstractHdfsBolt;
import org.apache.storm.hdfs.bolt.HdfsBolt;
import org.apache.storm.hdfs.bolt.SequenceFileBolt;
import org.apache.storm.hdfs.bolt.format.DefaultFileNameFormat;
import org.apache.storm.hdfs.bolt.format.DelimitedRecordFormat;
import org.apache.storm.hdfs.bolt.format.SequenceFormat;
import org.apache.storm.hdfs.bolt.format.SimpleFileNameFormat;
import org.apache.storm.hdfs.bolt.rotation.NoRotationPolicy;
import org.apache.storm.hdfs.bolt.sync.CountSyncPolicy;
import org.apache.storm.tuple.Tuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bolts of storm-hdfs on local files: one copy writes, drains and is cleaned up, and another goes on. */
class HdfsTest {
    @TempDir
    Path folder;

    /** A number and its text. */
    static final class Numbers implements SequenceFormat {
        @Override
        public Class<?> keyClass() {
            return LongWritable.class;
        }

        @Override
        public Class<?> valueClass() {
            return Text.class;
        }

        @Override
        public LongWritable key(Tuple tuple) {
            return new LongWritable(tuple.getLong(0));
        }

        @Override
        public Text value(Tuple tuple) {
            return new Text(tuple.getValue(0).toString());
        }
    }

    private DefaultFileNameFormat names() {
        return new DefaultFileNameFormat().withPath(folder + "/");
    }

    private HdfsBolt lines() {
        return new HdfsBolt()
                .withFsUrl("file:///")
                .withFileNameFormat(names())
                .withRecordFormat(new DelimitedRecordFormat())
                .withRotationPolicy(new NoRotationPolicy())
                .withSyncPolicy(new CountSyncPolicy(10));
    }

    private SequenceFileBolt sequences() {
        return new SequenceFileBolt()
                .withFsUrl("file:///")
                .withFileNameFormat(names())
                .withSequenceFormat(new Numbers())
                .withRotationPolicy(new NoRotationPolicy())
                .withSyncPolicy(new CountSyncPolicy(10));
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.filter(one -> !one.getFileName().toString().startsWith("."))
                    .sorted()
                    .toList();
        }
    }

    /** Two copies after each other, and the files that are there then. */
    private List<Path> renewed(AbstractHdfsBolt bolt) throws IOException {
        Copy source = new Copy(bolt, new HashMap<>());
        assertEquals(How.RENEW, source.verdict().how(), source.verdict().why());
        source.take(0, 25);
        assertEquals(20, source.acked.get());
        assertFalse(source.drained(), "five tuples wait to be acked");
        source.tick();
        assertTrue(source.drained(), "a tick has them written and acked");
        assertEquals(25, source.acked.get());
        assertNull(source.remembers());
        source.cleanUp();
        Copy target = new Copy(bolt, new HashMap<>());
        target.take(25, 50);
        target.tick();
        target.cleanUp();
        assertEquals(25, target.acked.get());
        assertEquals(0, source.failed.get() + target.failed.get());
        return files();
    }

    @Test
    void allLinesAreWrittenOnceInTwoFiles() throws Exception {
        List<Path> files = renewed(lines());
        assertEquals(2, files.size(), files.toString());
        List<String> written = new ArrayList<>();
        for (Path file : files) {
            written.addAll(Files.readAllLines(file));
        }
        assertEquals(50, written.size());
        assertEquals(50, new TreeSet<>(written).size());
    }

    @Test
    void allRecordsOfSequenceFilesAreWrittenOnce() throws Exception {
        List<Long> written = new ArrayList<>();
        for (Path file : renewed(sequences())) {
            org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(file.toUri());
            try (SequenceFile.Reader reader =
                    new SequenceFile.Reader(new Configuration(), SequenceFile.Reader.file(path))) {
                LongWritable key = new LongWritable();
                while (reader.next(key)) {
                    written.add(key.get());
                }
            }
        }
        assertEquals(
                LongStream.range(0, 50).boxed().toList(),
                written.stream().sorted().toList());
    }

    /** Its names need not have the time: the next copy would write over what is there. */
    @Test
    void filesWithOtherNamesStay() {
        HdfsBolt bolt = lines().withFileNameFormat(
                        new SimpleFileNameFormat().withPath(folder.toString()).withName("part.$NUM"));
        assertEquals(How.STAYS, new Copy(bolt, new HashMap<>()).verdict().how());
    }
}
