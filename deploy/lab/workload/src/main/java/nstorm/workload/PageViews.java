package nstorm.workload;

import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** A web site's log: lines are parsed and filtered, visitors placed, views counted by minute, region and page. */
final class PageViews {
    private static final int COUNT = 4096;

    private PageViews() {}

    static StormTopology build(Map<String, Object> conf) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout(
                "spout", new LedgerSpout(PageViews::lines, true), WordCount.integer(conf, WordCount.SPOUTS, 2));
        builder.setBolt("parse", new ParseBolt(), WordCount.integer(conf, "workload.parses", 4))
                .shuffleGrouping("spout");
        builder.setBolt("place", new PlaceBolt(), WordCount.integer(conf, "workload.places", 4))
                .shuffleGrouping("parse");
        WordCount.ticking(
                builder.setBolt("views", new ViewsBolt(), WordCount.integer(conf, "workload.views", 4))
                        .fieldsGrouping("place", new Fields("page")),
                conf);
        return builder.createTopology();
    }

    /** "address method page status agent"; of the requests some are no views: errors, robots, pictures. */
    static String[] lines(Map<String, Object> conf, int task) {
        int seed = WordCount.integer(conf, WordCount.SEED, 1);
        String[] names = Sentences.words(seed, WordCount.integer(conf, WordCount.VOCABULARY, 1000));
        double[] cumulative = Sentences.cumulative(names.length, WordCount.number(conf, WordCount.ZIPF_EXPONENT, 1));
        Random random = new Random(31L * seed + task);
        return IntStream.range(0, COUNT)
                .mapToObj(i -> {
                    String address =
                            (1 + random.nextInt(223)) + "." + random.nextInt(256) + "." + random.nextInt(256) + ".1";
                    String page =
                            "/" + names[Sentences.sample(cumulative, random)] + (random.nextInt(5) == 0 ? ".png" : "");
                    return address
                            + (random.nextInt(10) == 0 ? " POST " : " GET ")
                            + page
                            + (random.nextInt(20) == 0 ? " 404 " : " 200 ")
                            + (random.nextInt(8) == 0 ? "robot" : "browser");
                })
                .toArray(String[]::new);
    }
}
