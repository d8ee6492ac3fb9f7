package nstorm.wire.json;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads JSON by what is known of it: keys that are not known are passed over, what is known has to be right.
 *
 * <p>Each value is judged as it comes, so of a key that stands twice the last value counts and all have to be right.
 * Python's msgspec does the same.
 */
public final class JsonInput {

    /** Reads one value. */
    public interface ValueReader<T> {
        T read(JsonInput in) throws IOException, WireException;
    }

    private static final int LONGEST_NAME = 512;

    private final JsonReader json;

    private JsonInput(Reader text) {
        json = new JsonReader(text);
        json.setStrictness(Strictness.STRICT);
    }

    /** Reads UTF-8 JSON, compressed or not, that holds one value. */
    public static <T> T parse(byte[] message, ValueReader<T> top) throws WireException {
        return reading(() -> {
            String text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(Packing.unpack(message)))
                    .toString();
            if (text.startsWith("\ufeff")) {
                throw new WireException("begins with a byte order mark"); // Gson would pass over it
            }
            JsonInput in = new JsonInput(new StringReader(text));
            T value = top.read(in);
            if (in.json.peek() != JsonToken.END_DOCUMENT) {
                throw new WireException("more than one JSON value");
            }
            return value;
        });
    }

    /** Reads the begin of UTF-8 JSON, as far as the reader wants, and looks at nothing behind it. */
    public static <T> T parseHead(byte[] message, ValueReader<T> top) throws WireException {
        return reading(() -> top.read(new JsonInput(
                new InputStreamReader(new ByteArrayInputStream(message), StandardCharsets.UTF_8.newDecoder()))));
    }

    private interface Reading<T> {
        T read() throws IOException, WireException;
    }

    private static <T> T reading(Reading<T> reading) throws WireException {
        try {
            return reading.read();
        } catch (CharacterCodingException e) {
            throw new WireException("not UTF-8", e);
        } catch (IOException | RuntimeException e) {
            throw new WireException("not JSON" + where(String.valueOf(e.getMessage())), e);
        }
    }

    /** Gson's message has more, for programmers. */
    private static String where(String message) {
        int at = message.indexOf(" at line ");
        return at < 0 ? "" : message.substring(at).lines().findFirst().orElse("");
    }

    public void beginObject() throws IOException, WireException {
        expect(JsonToken.BEGIN_OBJECT, "an object");
        json.beginObject();
    }

    /** The next key of the object; null if there is none, the object is then ended. */
    public String nextKey() throws IOException, WireException {
        if (json.hasNext()) {
            return sound(json.nextName());
        }
        json.endObject();
        return null;
    }

    /** A value of the object that has just ended, which must have been there. */
    public <T> T required(T value, String key) throws WireException {
        if (value == null) {
            throw new WireException((at() + "." + key).substring(at().isEmpty() ? 1 : 0) + " is missing");
        }
        return value;
    }

    public <T> List<T> list(ValueReader<T> item) throws IOException, WireException {
        beginArray();
        List<T> items = new ArrayList<>();
        while (json.hasNext()) {
            items.add(item.read(this));
        }
        json.endArray();
        return List.copyOf(items);
    }

    public void beginArray() throws IOException, WireException {
        expect(JsonToken.BEGIN_ARRAY, "a list");
        json.beginArray();
    }

    /** Passes over what a later version has added to the array. */
    public void endArray() throws IOException, WireException {
        while (json.hasNext()) {
            pass();
        }
        json.endArray();
    }

    public String text() throws IOException, WireException {
        expect(JsonToken.STRING, "a text");
        return sound(json.nextString());
    }

    public String textOrNull() throws IOException, WireException {
        if (json.peek() != JsonToken.NULL) {
            return text();
        }
        json.nextNull();
        return null;
    }

    public boolean flag() throws IOException, WireException {
        expect(JsonToken.BOOLEAN, "true or false");
        return json.nextBoolean();
    }

    /** A name as {@link #isName} has it. */
    public String name() throws IOException, WireException {
        String name = text();
        if (!isName(name)) {
            throw wrong("is no name of at most " + LONGEST_NAME + " characters that can be printed");
        }
        return name;
    }

    /** A name, or null. */
    public String nameOrNull() throws IOException, WireException {
        if (json.peek() != JsonToken.NULL) {
            return name();
        }
        json.nextNull();
        return null;
    }

    /** Whether a text can be shown: not empty, not long, no control characters. */
    public static boolean isName(String text) {
        return !text.isEmpty()
                && text.codePointCount(0, text.length()) <= LONGEST_NAME
                && text.chars().noneMatch(JsonInput::isControl);
    }

    private static boolean isControl(int c) {
        return c < ' '
                || c >= 0x7f && c <= 0x9f
                || c == 0x2028
                || c == 0x2029
                || c >= 0x202a && c <= 0x202e
                || c >= 0x2066 && c <= 0x2069;
    }

    /** A whole number in these bounds, both included. */
    public long whole(long least, long most) throws IOException, WireException {
        expect(JsonToken.NUMBER, "a whole number");
        String digits = json.nextString();
        try {
            long number = Long.parseLong(digits);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // falls through to the one message
        }
        throw wrong("is not a whole number from " + least + " to " + most);
    }

    /** Passes over a value, whatever it is. Gson's own way would not look into its texts. */
    public void pass() throws IOException, WireException {
        int depth = 0;
        do {
            switch (json.peek()) {
                case BEGIN_OBJECT -> {
                    json.beginObject();
                    depth++;
                }
                case BEGIN_ARRAY -> {
                    json.beginArray();
                    depth++;
                }
                case END_OBJECT -> {
                    json.endObject();
                    depth--;
                }
                case END_ARRAY -> {
                    json.endArray();
                    depth--;
                }
                case NAME -> sound(json.nextName());
                case BOOLEAN -> {
                    boolean unused = json.nextBoolean();
                }
                case NULL -> json.nextNull();
                default -> sound(json.nextString());
            }
        } while (depth > 0);
    }

    /** What is wrong with the value that was just read. */
    public WireException wrong(String what) {
        return new WireException((at() + " " + what).strip());
    }

    private void expect(JsonToken token, String what) throws IOException, WireException {
        if (json.peek() != token) {
            throw new WireException((path(json.getPath()) + " is not " + what).strip());
        }
    }

    /** Half a surrogate pair, which JSON can escape, is no text in UTF-8. */
    private String sound(String text) throws WireException {
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
            throw wrong("has half a surrogate pair");
        }
        return text;
    }

    private String at() {
        return path(json.getPreviousPath());
    }

    private static String path(String path) {
        return path.substring(path.startsWith("$.") ? 2 : 1);
    }
}
