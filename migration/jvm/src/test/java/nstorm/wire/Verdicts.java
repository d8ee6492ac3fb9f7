package nstorm.wire;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import nstorm.wire.json.JsonText;
import nstorm.wire.json.WireException;

/**
 * Judges messages for the Python tests, thousands in one JVM: reads a line of base64 each and writes a line each, {@code ok}
 * with what was understood or {@code refused}. The one argument is {@code Plan}, also without it, or {@code LocalPlan}.
 */
public final class Verdicts {

    private Verdicts() {}

    public static void main(String[] args) throws Exception {
        boolean local = args.length > 0 && args[0].equals("LocalPlan");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            byte[] message = Base64.getDecoder().decode(line.strip());
            try {
                out.println("ok " + (local ? canonical(LocalPlan.parse(message)) : canonical(Plan.parse(message))));
            } catch (WireException e) {
                out.println("refused");
            }
        }
        out.flush();
    }

    static String canonical(Plan plan) {
        JsonText json = new JsonText();
        write(json, plan);
        return text(json);
    }

    static String canonical(LocalPlan local) {
        JsonText json = new JsonText();
        json.open()
                .put("cluster", local.cluster())
                .list("plans", local.plans(), Verdicts::write)
                .close();
        return text(json);
    }

    private static String text(JsonText json) {
        return new String(json.bytes(), StandardCharsets.UTF_8);
    }

    private static void write(JsonText json, Plan plan) {
        json.open()
                .put("cluster", plan.cluster())
                .put("epoch", plan.epoch())
                .put("version", plan.version())
                .put("topology", plan.topology())
                .list("entries", plan.entries(), Verdicts::write)
                .close();
    }

    private static void write(JsonText json, Entry entry) {
        json.open()
                .put("id", entry.id())
                .put("executor", entry.executor(), ExecutorId::write)
                .put("from", entry.from())
                .put("to", entry.to())
                .put("phase", entry.phase())
                .put(
                        "base",
                        entry,
                        (out, of) -> out.listOf(
                                () -> out.value(of.baseSlot().toString()).value(of.baseStartSecs())))
                .put("void", entry.voidReason())
                .put("way", entry.way())
                .put("opens", entry.opens())
                .put("ordered", entry.ordered())
                .close();
    }
}
