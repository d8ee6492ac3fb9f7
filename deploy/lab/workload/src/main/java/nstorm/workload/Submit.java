package nstorm.workload;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.StormSubmitter;

/** The main class of a topology, as users have one. Arguments: the folder for the ledgers, and the workloads to submit. */
public final class Submit {
    private Submit() {}

    public static void main(String[] arguments) throws Exception {
        List<String> workloads = List.of(arguments).subList(1, arguments.length);
        System.out.println("submitting " + workloads);
        for (String name : workloads) {
            Map<String, Object> conf = new HashMap<>(Map.of(WordCount.LEDGER_DIR, arguments[0]));
            StormSubmitter.submitTopology(name, conf, Workloads.build(name, conf));
        }
    }
}
