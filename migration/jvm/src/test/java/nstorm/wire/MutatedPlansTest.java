package nstorm.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import nstorm.wire.json.Packing;
import nstorm.wire.json.WireException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Whatever the bytes: a whole plan or a refusal in one sentence, and nothing else. */
class MutatedPlansTest {

    private static final List<String> VALUES = List.of(
            "null",
            "true",
            "-1",
            "1.5e-9",
            "1e999",
            "\"\"",
            "\"\\u00e9\\ud83c\\udf29\"",
            "[]",
            "[[],{\"a\":[1,{}]}]",
            "{}",
            "{\"entries\":[1],\"later\":{\"a\":null}}");

    private static final Pattern OBJECT = Pattern.compile("\\{(?=\")");

    private final Random random = new Random(42);
    private String text;
    private LocalPlan whole;

    @BeforeEach
    void read() throws Exception {
        text = new String(Golden.bytes("local_plan.json"), StandardCharsets.UTF_8);
        whole = LocalPlan.parse(text.getBytes(StandardCharsets.UTF_8));
    }

    /** What was understood, null if it was refused. */
    private static LocalPlan verdict(byte[] bytes) {
        try {
            LocalPlan plan = LocalPlan.parse(bytes);
            assertEquals(plan, LocalPlan.parse(Verdicts.canonical(plan).getBytes(StandardCharsets.UTF_8)), "whole");
            return plan;
        } catch (WireException e) {
            assertEquals(1, e.getMessage().lines().count(), e.getMessage());
            return null;
        } catch (Throwable e) {
            return fail(new String(bytes, StandardCharsets.ISO_8859_1), e);
        }
    }

    @Test
    void cutAtAnyByte() {
        byte[] plain = text.getBytes(StandardCharsets.UTF_8);
        byte[] packed = Packing.pack((text + " ".repeat(4_000)).getBytes(StandardCharsets.UTF_8));
        for (byte[] bytes : List.of(plain, packed)) {
            assertEquals(whole, verdict(bytes));
            for (int end = 0; end < bytes.length; end++) {
                byte[] cut = Arrays.copyOf(bytes, end);
                assertThrows(WireException.class, () -> LocalPlan.parse(cut));
            }
        }
    }

    @Test
    void withAnyByteChanged() {
        byte[] plain = text.getBytes(StandardCharsets.UTF_8);
        for (int at = 0; at < plain.length; at++) {
            for (int value = 0; value < 256; value += at % 16 == 0 ? 1 : 5) {
                byte[] changed = plain.clone();
                changed[at] = (byte) value;
                verdict(changed);
            }
        }
    }

    @Test
    void packedWithAnyByteChanged() {
        byte[] packed = Packing.pack((text + " ".repeat(4_000)).getBytes(StandardCharsets.UTF_8));
        for (int at = 0; at < packed.length; at++) {
            for (int value = 0; value < 256; value += 5) {
                byte[] changed = packed.clone();
                changed[at] = (byte) value;
                LocalPlan plan = verdict(changed);
                assertTrue(plan == null || plan.equals(whole), "it has a checksum");
            }
        }
    }

    @Test
    void withUnknownKeysAnywhere() {
        for (int round = 0; round < 2_000; round++) {
            StringBuilder later = new StringBuilder(text);
            for (int keys = 1 + random.nextInt(5); keys > 0; keys--) {
                List<Integer> objects =
                        OBJECT.matcher(later).results().map(MatchResult::end).toList();
                int at = objects.get(random.nextInt(objects.size()));
                String value = VALUES.get(random.nextInt(VALUES.size()));
                later.insert(at, "\"later" + random.nextInt(3) + "\":" + value + ",");
            }
            assertEquals(whole, verdict(later.toString().getBytes(StandardCharsets.UTF_8)), later.toString());
        }
    }

    @Test
    void withKeysThatStandTwice() {
        List<String> keys = List.of(
                "cluster",
                "epoch",
                "version",
                "topology",
                "entries",
                "plans",
                "id",
                "executor",
                "from",
                "to",
                "phase",
                "base",
                "void",
                "way");
        int understood = 0;
        for (String key : keys) {
            int at = text.indexOf("\"" + key + "\":");
            for (String value : VALUES) {
                LocalPlan plan = verdict((text.substring(0, at) + "\"" + key + "\":" + value + "," + text.substring(at))
                        .getBytes(StandardCharsets.UTF_8));
                assertTrue(plan == null || plan.equals(whole), "the last counts");
                understood += plan == null ? 0 : 1;
            }
        }
        assertTrue(understood > keys.size() / 2, "values that could have been");
    }

    @Test
    void garbage() {
        String alphabet = "{}[]\",:0123456789eE+-.truefalsn \\u\u00e9";
        for (int round = 0; round < 20_000; round++) {
            StringBuilder bytes = new StringBuilder();
            for (int length = random.nextInt(60); length > 0; length--) {
                bytes.append(alphabet.charAt(random.nextInt(alphabet.length())));
            }
            assertEquals(null, verdict(bytes.toString().getBytes(StandardCharsets.UTF_8)));
        }
    }
}
